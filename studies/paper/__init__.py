"""The experiments of the paper: its tables, model errors, and materials next to colours."""
