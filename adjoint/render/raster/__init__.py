"""The twins of `render/raster`."""
