"""Joints between rigid bodies, as forces on their frame points, and pins between points."""
