"""Twins of `adjsim/rigid/`."""
