"""The pure part: values in, frozen dataclasses out; no I/O, clock, environment or randomness."""
