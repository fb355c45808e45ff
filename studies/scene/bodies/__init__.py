"""The bodies of a scene, one file for each kind."""
