"""Elements by tiles: their arrays, the loop around every element function, sums of nodes."""
