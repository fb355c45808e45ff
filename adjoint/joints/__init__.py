"""Twins of `adjsim/joints`, at the same paths."""
