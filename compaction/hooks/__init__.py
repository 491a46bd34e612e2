"""Asks hooks around a compaction: the operator's plugins and the tenants' endpoints. `core.hooks` has the rules."""
