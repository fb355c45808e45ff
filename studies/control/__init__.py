"""Controls: searches for what brings bodies where a target has them, and how near they end."""
