"""Cameras, scenes, soft rasterization and image losses: forward only."""
