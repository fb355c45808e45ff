"""The twins of `render/shaders`."""
