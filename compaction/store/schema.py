"""The metadata of every table: for whoever migrates, compares or walks through all of them."""

from compaction.store import bulk_tables, operator_tables  # each adds its tables to the metadata
from compaction.store.tables import metadata

__all__ = ["bulk_tables", "metadata", "operator_tables"]
