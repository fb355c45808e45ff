"""How systems get from one state to the next."""
