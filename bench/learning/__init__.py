"""What learning brings to the decisions of a compiler."""
