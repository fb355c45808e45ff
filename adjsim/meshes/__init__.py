"""Tetrahedral meshes: grids, files, tetrahedralisation, embedded surfaces."""
