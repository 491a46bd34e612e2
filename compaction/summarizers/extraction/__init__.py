"""What can be read off a transcript without a model: one noun per file, each a pure function of the timeline."""
