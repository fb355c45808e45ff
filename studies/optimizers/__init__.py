"""Gradient descent, Adam, L-BFGS-B, Newton-CG and Gauss-Newton behind one resumable call."""
