"""Colours of fragments: normals, lights, highlights, textures."""
