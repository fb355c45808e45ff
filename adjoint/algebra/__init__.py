"""The twins of `adjsim/algebra`."""
