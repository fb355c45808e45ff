"""The pictures, meshes and films that come with the bundled scenes: how they were made."""
