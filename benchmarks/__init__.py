"""Timing, and films of other simulators and renderers. May import anything."""
