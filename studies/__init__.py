"""Experiments on the simulator: parameters, optimizers, reports, the command line."""
