"""One resource per file."""
