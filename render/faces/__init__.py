"""Faces as a camera sees them: set up, covered pixels, nearest points, order by depth."""
