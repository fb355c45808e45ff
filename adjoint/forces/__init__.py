"""The twins of `adjsim/forces/`, one kind a file."""
