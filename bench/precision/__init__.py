"""Time and error of models in smaller numbers."""
