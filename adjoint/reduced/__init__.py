"""Twins of `adjsim/reduced/`. Public names live in the modules."""
