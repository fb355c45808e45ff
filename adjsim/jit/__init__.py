"""Everything specific to Numba: devices, threads, launches, calls by number, cache of kernels."""
