"""The tables of bulk runs: orders to compact many sessions anew, their sessions, and the batches sent for them."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    Numeric,
    Table,
    Text,
    UniqueConstraint,
    false,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID

from compaction.store.sealed_text import SealedText
from compaction.store.tables import metadata


def _at(name: str, *, set_now: bool = False) -> Column[object]:
    return Column(name, DateTime(timezone=True), nullable=not set_now, server_default=func.now() if set_now else None)


def _json(name: str, *, required: bool = False) -> Column[object]:
    kind = JSONB(none_as_null=True)  # None is SQL's null, not JSON's
    return Column(name, kind, nullable=not required, server_default=text("'{}'::jsonb") if required else None)


def _of(owner: str, kind: type[BigInteger] | UUID[str] = BigInteger) -> Column[object]:
    """The column `tenant_id`, say, of what goes with its tenant."""
    name = f"{owner.removeprefix('bulk_').removesuffix('s')}_id"
    return Column(name, kind, ForeignKey(f"{owner}.id", ondelete="CASCADE"), nullable=False)


bulk_runs = Table(  # core.bulk draws the states
    "bulk_runs",
    metadata,
    Column("id", UUID(as_uuid=False), primary_key=True, server_default=text("uuidv7()")),  # grows with time
    _of("tenants"),
    Column("state", Text, nullable=False, server_default=text("'planning'")),
    Column("resume_to", Text),  # the state that a pause interrupted
    Column("dry_run", Boolean, nullable=False),
    _json("selection", required=True),  # which sessions
    Column("way", Text, nullable=False),
    Column("way_note", Text),  # why it is not the way that was asked for
    Column("model", Text),
    Column("strategy", Text),
    Column("instructions", SealedText),
    Column("force", Boolean, nullable=False),
    Column("sample", Integer),  # so many first; None once they were looked at
    Column("max_usd", Numeric(14, 6)),
    Column("max_tokens", BigInteger),
    Column("prompt_version", Integer, nullable=False),
    Column("after_session_id", BigInteger, nullable=False, server_default=text("0")),  # how far the plan has come
    Column("through_session_id", BigInteger, nullable=False),  # sessions that came later are not the run's
    Column("end_reason", Text),
    _at("created_at", set_now=True),
    _at("planned_at"),
    _at("started_at"),
    _at("stepped_at", set_now=True),  # when a leader last took it up: runs take turns
    _at("ended_at"),
    CheckConstraint("state IN ('planning','ready','running','sampled','paused','cancelling','ended')", name="state"),
    CheckConstraint("way IN ('live','message_batches')", name="way"),
    CheckConstraint("(state = 'ended') = (ended_at IS NOT NULL)", name="ended"),
    Index("ix_bulk_runs_tenant_id_id", "tenant_id", "id"),
    Index("ix_bulk_runs_active", "id", postgresql_where=text("state <> 'ended'")),
)

bulk_batches = Table(  # written before the model's API hears of one, so that none can be lost
    "bulk_batches",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    _of("tenants"),
    _of("bulk_runs", UUID(as_uuid=False)),
    Column("state", Text, nullable=False, server_default=text("'intended'")),
    Column("provider_id", Text),  # msgbatch_…; None while nobody knows whether it was taken
    Column("adopted", Boolean, nullable=False, server_default=false()),  # found by its size; no answer was ours yet
    Column("requests", Integer, nullable=False, server_default=text("0")),
    _json("counts", required=True),  # as the API names them
    _at("created_at", set_now=True),
    _at("sent_at"),
    _at("ended_at"),
    CheckConstraint("state IN ('intended','sent','ended','void')", name="state"),
    Index("ix_bulk_batches_tenant_id_id", "tenant_id", "id"),
    Index("ix_bulk_batches_run_id_id", "run_id", "id"),
    Index("uq_bulk_batches_provider_id", "provider_id", unique=True, postgresql_where=text("state <> 'void'")),
)

bulk_items = Table(  # one session of a run
    "bulk_items",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    _of("bulk_runs", UUID(as_uuid=False)),
    _of("sessions"),
    Column("state", Text, nullable=False),
    Column("reason", Text),  # why it was skipped
    Column("content_hash", Text, nullable=False),  # of the messages; with the recipe it says what was paid for
    Column("recipe", Text, nullable=False),  # core.bulk.recipe: prompt version, strategy, model, instructions
    Column("covers_through_seq", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False, server_default=text("0")),  # estimated, of the session
    Column("live_usd", Numeric(14, 6)),  # estimated price of a live call; None: the model's price is unknown
    Column(
        "feeds", Integer, nullable=False, server_default=text("0")
    ),  # how often it was given to the queue or to a batch
    Column("misses", Integer, nullable=False, server_default=text("0")),  # of those, how often for nothing: core.bulk
    Column("job_id", UUID(as_uuid=False)),  # no foreign key: the item outlives what retention deletes
    Column("batch_id", BigInteger),
    Column("answers", LargeBinary),  # what the model's API answered so far, packed by store.bodies
    _at("not_before", set_now=True),
    Column("error_code", Text),
    Column("strategy", Text),
    Column("model", Text),
    Column("pre_tokens", BigInteger),
    Column("post_tokens", BigInteger),
    _json("dropped"),
    Column("used_tokens", BigInteger, nullable=False, server_default=text("0")),
    Column("cost_usd", Numeric(14, 6), nullable=False, server_default=text("0")),
    Column("seconds", Double),
    _at("created_at", set_now=True),
    _at("ended_at"),
    CheckConstraint(
        "state IN ('found','skipped','batched','queued','succeeded','failed','cancelled','expired')", name="state"
    ),
    UniqueConstraint("run_id", "session_id"),
    Index("ix_bulk_items_run_id_state_id", "run_id", "state", "id"),
    Index("uq_bulk_items_job_id", "job_id", unique=True, postgresql_where=text("job_id IS NOT NULL")),
    Index("ix_bulk_items_key", "session_id", "recipe", "content_hash"),
    Index("ix_bulk_items_batch_id", "batch_id", postgresql_where=text("batch_id IS NOT NULL")),
)
