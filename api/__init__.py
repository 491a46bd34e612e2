"""compactd's HTTP side: one resource per file in `routes`, its shapes in `schemas`; every failure is a problem."""
