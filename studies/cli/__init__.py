"""The command `adjsim`."""
