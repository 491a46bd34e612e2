"""The pure part: values in, frozen dataclasses out. No I/O, clock, environment or randomness (import-linter holds it)."""
