"""Data sets: scenes drawn at random, simulated, rendered, and written for any reader."""
