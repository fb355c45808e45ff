"""How models run: flat arrays, tiles, loops over elements and steps, on the CPU and on a GPU."""
