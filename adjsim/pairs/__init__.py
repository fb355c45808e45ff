"""Contact between bodies, and of a body with itself: pairs of surface features that change."""
