"""Rigid bodies: mass properties, rotations, and the step that advances them."""
