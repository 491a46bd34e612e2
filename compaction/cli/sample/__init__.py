"""A believable agent session that ships with the product: a written scenario, expanded by a seeded generator."""

from compaction.cli.sample.session import DEFAULT_SEED, STARTED_AT, sample_session, write_sample

__all__ = ["DEFAULT_SEED", "STARTED_AT", "sample_session", "write_sample"]
