"""Vectors and matrices as tuples of numbers, for element functions."""
