"""From scenes to fragments and pixels: setup of faces, tiles, blends, on the CPU and on a GPU."""
