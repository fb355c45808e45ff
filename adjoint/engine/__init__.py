"""The reverse sweep and the tangent: the twins of `adjsim/engine`."""
