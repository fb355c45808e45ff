"""A declared scene: what a scene file may hold, and the model, cameras and looks made from it."""
