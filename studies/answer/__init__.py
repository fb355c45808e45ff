"""What the answer of a search is worth: intervals, prediction of held-back frames, a verdict."""
