"""Meshes: generators, files, tetrahedralisation, embedded surfaces."""
