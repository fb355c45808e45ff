"""The twins of `adjsim/tiles`."""
