"""Forces, one kind a file."""
