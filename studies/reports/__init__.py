"""Reports as data (`report.json`), and the pages that templates make of them."""
