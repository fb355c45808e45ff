"""Gradient descent, Adam, L-BFGS-B and Gauss-Newton behind one resumable call."""
