"""How accurate adjsim is, beside closed forms and FEM: `python -m benchmarks.accuracy`."""
