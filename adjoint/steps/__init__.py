"""Adjoints and tangents of `adjsim/steps`."""
