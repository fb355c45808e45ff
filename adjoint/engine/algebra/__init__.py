"""The twins of `adjsim/engine/algebra`."""
