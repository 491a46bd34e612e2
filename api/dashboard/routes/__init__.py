"""One page per file."""
