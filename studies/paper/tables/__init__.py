"""The paper's tables: many random instances, each with several methods, and their errors."""
