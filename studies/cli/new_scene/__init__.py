"""Scene files to begin with: what `adjsim new` writes."""
