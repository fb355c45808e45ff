"""The hand-derived twins of `render`, file by file."""
