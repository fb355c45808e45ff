"""Systems with a state of their own: pendula and smoke. Public names live in the modules."""
