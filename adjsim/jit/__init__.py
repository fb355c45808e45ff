"""Everything specific to Numba: devices, threads, calls by number, the cache of kernels."""
