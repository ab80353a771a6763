"""Learning: its worth for the decisions of a compiler."""
