"""Who makes summaries: a model through its SDK, or the transcript itself."""
