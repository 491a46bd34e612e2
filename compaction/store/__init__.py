"""The store: the only SQLAlchemy. Functions take an open connection, run in the caller's transaction, never commit.

`engine.Database` gives connections: `begin()` for a unit of work, `connect()` where each statement is one.
"""
