"""The store: the only SQLAlchemy. Functions take an open connection, run inside the caller's transaction, never commit.

`engine.Database` gives connections: `begin()` for a unit of work, `connect()` for single statements, each atomic by itself.
"""
