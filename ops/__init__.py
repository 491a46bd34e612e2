"""What is operated, not imported by the product: the embedded stack, its set-up and checks."""
