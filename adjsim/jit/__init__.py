"""Everything specific to Numba: devices, threads, launches on a GPU, calls by number, the cache of kernels."""
