"""The twins of `render/faces`."""
