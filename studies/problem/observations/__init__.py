"""What was observed of a scene: films, tracked points and states, as arrays."""
