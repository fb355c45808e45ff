"""What was observed of a scene: films, outlines, points, states, clouds and depths, as arrays."""
