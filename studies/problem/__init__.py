"""A scene, what was observed of it and what is free, as one problem to search, judge and report."""
