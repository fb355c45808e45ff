"""How a parameter is looked for: a coarse set, basins of the loss, stages, local searches."""
