"""Batches whose rows have lengths of their own."""
