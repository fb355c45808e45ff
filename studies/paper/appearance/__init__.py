"""What a material and its colour tell from a film, searched together and one by one."""
