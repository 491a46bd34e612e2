"""Sends the news of jobs to the addresses that tenants gave. `core.webhooks` has the rules, `store` the outbox."""
