"""Adjoints of contact between bodies."""
