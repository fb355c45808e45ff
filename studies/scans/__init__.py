"""Scans: loss and gradient of a study's problem on a grid, and what the grid shows."""
