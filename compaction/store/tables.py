"""The tables. Postgres is the queue and the truth; all times are Postgres's own `now()`.

Bodies are `bytea` written by `store.bodies` (compressed, byte-faithful): jsonb would lose key order, duplicate keys,
NUL characters and lone surrogates. Columns beside a body are what queries need.
"""

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
    MetaData,
    Numeric,
    Sequence,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID

from compaction.store.sealed_text import SealedText

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

_NOW = func.now()
_EMPTY = text("'{}'::jsonb")


def _at(name: str, *, set_now: bool = False) -> Column[object]:
    return Column(name, DateTime(timezone=True), nullable=not set_now, server_default=_NOW if set_now else None)


def _json(name: str, *, required: bool = False, default: bool = False) -> Column[object]:
    kind = JSONB(none_as_null=True)  # None is SQL's null, not JSON's
    return Column(name, kind, nullable=not required, server_default=_EMPTY if default else None)


def _tenant(*, primary_key: bool = False, index: bool = False) -> Column[int]:
    owner = ForeignKey("tenants.id", ondelete="CASCADE")
    return Column("tenant_id", BigInteger, owner, nullable=False, primary_key=primary_key, index=index)


def _session(*, primary_key: bool = False, index: bool = False) -> Column[int]:
    owner = ForeignKey("sessions.id", ondelete="CASCADE")
    return Column("session_id", BigInteger, owner, nullable=False, primary_key=primary_key, index=index)


def _job(*, primary_key: bool = False) -> Column[str]:
    owner = ForeignKey("jobs.id", ondelete="CASCADE")
    return Column("job_id", UUID(as_uuid=False), owner, nullable=False, primary_key=primary_key)


lease_tokens = Sequence("lease_tokens", metadata=metadata)  # fencing tokens: never reused, always growing

tenants = Table(
    "tenants",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    _at("created_at", set_now=True),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    _tenant(index=True),
    Column("public_id", Text, nullable=False, unique=True),  # the part after ck_, says which key without being one
    Column("secret_hash", LargeBinary, nullable=False),  # HMAC-SHA256(pepper, key); the key has 256 random bits
    Column("scopes", ARRAY(Text), nullable=False),
    _at("created_at", set_now=True),
    _at("expires_at"),
    _at("last_used_at"),
    _at("revoked_at"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    _tenant(),
    Column("name", Text, nullable=False),  # the producer's session id
    Column("model", Text, nullable=False),
    Column("query_source", Text),
    Column("parameters", LargeBinary),  # {system, tools, request}: exact JSON, encoded by store.bodies
    _json("settings", required=True, default=True),
    Column("head_seq", BigInteger, nullable=False, server_default=text("0")),  # seq of the newest message
    Column("boundary_seq", BigInteger, nullable=False, server_default=text("0")),  # newest stored boundary or summary
    Column("live_job_id", UUID(as_uuid=False)),  # the result that the live view begins with, if newer than boundary_seq
    _at("created_at", set_now=True),
    _at("updated_at", set_now=True),
    Column("is_ephemeral", Boolean, nullable=False, server_default=text("false")),  # an inline job's own; goes with it
    UniqueConstraint("tenant_id", "name"),
    Index("ix_sessions_ephemeral", "created_at", postgresql_where=text("is_ephemeral")),
)

messages = Table(
    "messages",
    metadata,
    _session(primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),  # 1, 2, 3 … within the session
    Column("uuid", Text),
    Column("role", Text, nullable=False),
    Column("partial", Boolean, nullable=False, server_default=text("false")),
    Column("starts_live", Boolean, nullable=False, server_default=text("false")),  # a boundary or a summary
    Column("body_bytes", Integer, nullable=False),  # size before compression
    Column("body", LargeBinary, nullable=False),
    _at("stored_at", set_now=True),
    Column("off_branch", Boolean, nullable=False, server_default=text("false")),  # rewound: in the full view alone
    Index("uq_messages_session_id_uuid", "session_id", "uuid", unique=True, postgresql_where=text("uuid IS NOT NULL")),
    Index("ix_messages_starts_live", "session_id", "seq", postgresql_where=text("starts_live")),
)

_WAITING = text("status = 'queued'")
_ACTIVE = text("status IN ('running','retrying')")
_READY = text("status IN ('queued','retrying')")
_RUNNING = text("status = 'running'")
_UNHAPPY = text("status IN ('failed','cancelled') AND ended_at IS NOT NULL")

jobs = Table(
    "jobs",
    metadata,
    Column("id", UUID(as_uuid=False), primary_key=True, server_default=text("uuidv7()")),  # grows with time
    _tenant(),
    _session(),
    Column("status", Text, nullable=False, server_default=text("'queued'")),
    Column("trigger", Text, nullable=False),
    Column("scope_kind", Text, nullable=False, server_default=text("'full'")),
    Column("scope_uuid", Text),
    Column("instructions", SealedText),
    Column("strategy", Text),
    Column("fallback", Text),
    Column("force", Boolean, nullable=False, server_default=text("false")),
    Column("token_gap", BigInteger),
    _json("metadata", required=True, default=True),
    Column("priority", SmallInteger, nullable=False),
    _at("not_before", set_now=True),
    _at("deadline_at"),
    Column("attempt", Integer, nullable=False, server_default=text("0")),
    Column("max_attempts", Integer, nullable=False),
    Column("crashes", Integer, nullable=False, server_default=text("0")),
    Column("model_calls", Integer, nullable=False, server_default=text("0")),
    Column("coalesced", Integer, nullable=False, server_default=text("0")),  # enqueues that joined this job
    Column("lease_token", BigInteger),
    Column("lease_owner", Text),
    _at("lease_expires_at"),
    _at("dispatched_at"),
    _at("cancel_requested_at"),
    Column("covers_through_seq", BigInteger),  # the snapshot, fixed by the first claim
    _json("progress", required=True, default=True),  # {step, percent}
    Column("paid_summary", LargeBinary),  # checkpoint, cleared at the end
    Column("was_compacted", Boolean),
    Column("reason", Text),  # why nothing was compacted
    _json("error"),  # {code, message, retryable} of the last failed attempt
    Column("traceparent", Text),
    _at("created_at", set_now=True),
    _at("started_at"),
    _at("ended_at"),
    Column("snoozes", Integer, nullable=False, server_default=text("0")),  # times that it was sent back only to wait
    CheckConstraint("(status = 'running') = (lease_token IS NOT NULL)", name="lease"),
    CheckConstraint("(status IN ('succeeded','failed','cancelled')) = (ended_at IS NOT NULL)", name="ended"),
    CheckConstraint("status IN ('queued','running','retrying','succeeded','failed','cancelled')", name="status"),
    CheckConstraint("trigger IN ('auto','manual','reactive','bulk')", name="trigger"),
    CheckConstraint("scope_kind IN ('full','up_to','from')", name="scope_kind"),
    Index("uq_jobs_waiting", "session_id", unique=True, postgresql_where=_WAITING),
    Index("uq_jobs_active", "session_id", unique=True, postgresql_where=_ACTIVE),
    Index("ix_jobs_ready", "priority", "not_before", "id", postgresql_where=_READY),
    Index("ix_jobs_fair", "tenant_id", "priority", "not_before", "id", postgresql_where=_READY),
    Index("ix_jobs_waiting_id", "id", postgresql_where=_WAITING),  # what came since the queue was last counted
    Index("ix_jobs_waiting_tenant_id_id", "tenant_id", "id", postgresql_where=_WAITING),  # of one tenant
    Index("ix_jobs_deadline", "deadline_at", postgresql_where=_READY),
    # Beats and the reaper find the few running rows here; the lease's end stays out of every index, so that a beat
    # is a heap-only update (fillfactor leaves room for it).
    Index("uq_jobs_lease_token", "lease_token", unique=True, postgresql_where=_RUNNING),
    Index("ix_jobs_tenant_id_id", "tenant_id", "id"),
    Index("ix_jobs_tenant_id_status_id", "tenant_id", "status", "id"),
    Index(
        "ix_jobs_error_code", "tenant_id", text("(error ->> 'code')"), "id", postgresql_where=text("error IS NOT NULL")
    ),
    Index("ix_jobs_session_id_id", "session_id", "id"),
    # The dashboard's, over all tenants: how jobs ended lately, and those that a person has to look at.
    Index("ix_jobs_ended_at", "ended_at", postgresql_where=text("ended_at IS NOT NULL")),
    # Its words say the end twice, so that it is found by those who say it too: a tenant's own list has a better index.
    Index("ix_jobs_unhappy", "status", "id", postgresql_where=_UNHAPPY),
    Index("ix_jobs_code_id", text("(error ->> 'code')"), "id", postgresql_where=text("error IS NOT NULL")),
    # A queue's table dies young rows by the thousand: vacuum by the percent, not by the fifth.
    postgresql_with={"fillfactor": 85, "autovacuum_vacuum_scale_factor": 0.01, "autovacuum_analyze_scale_factor": 0.02},
)

attempts = Table(
    "attempts",
    metadata,
    _job(primary_key=True),
    Column("lease_token", BigInteger, primary_key=True, autoincrement=False),
    Column("attempt", Integer, nullable=False),
    Column("owner", Text, nullable=False),
    _at("started_at", set_now=True),
    _at("ended_at"),
    Column("outcome", Text),  # succeeded, skipped, failed, retrying, released, cancelled, expired, fenced
    _json("error"),
    _json("usage"),
)

job_events = Table(
    "job_events",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    _job(),
    _at("at", set_now=True),
    Column("type", Text, nullable=False),
    _json("data", required=True, default=True),
    Index("ix_job_events_job_id_id", "job_id", "id"),
)

results = Table(
    "results",
    metadata,
    _job(primary_key=True),
    _session(index=True),
    Column("lease_token", BigInteger, nullable=False),  # who wrote it
    Column("strategy", Text, nullable=False),
    Column("model", Text),
    Column("pre_tokens", BigInteger, nullable=False),
    Column("post_tokens", BigInteger, nullable=False),
    _json("usage", required=True),
    Column("cost_usd", Numeric(14, 6)),
    Column("ptl_attempts", Integer, nullable=False),
    _json("dropped", required=True),  # {rounds, messages, tokens}
    _json("context_management"),
    Column("covers_through_seq", BigInteger, nullable=False),
    Column("prefix_hash", Text, nullable=False),
    Column("degraded", Boolean, nullable=False),
    _json("hook_results", required=True),
    Column("body", LargeBinary, nullable=False),  # {boundary, summary, kept, attachments, hook_messages}: envelopes
    _at("created_at", set_now=True),
    _at("applied_at"),
    Column("applied_through_seq", BigInteger),  # the newest message that the producer was given with it
    Column("prompt_version", Integer),  # core.prompts.PROMPT_VERSION; None: made before it was kept
)

breakers = Table(
    "breakers",
    metadata,
    _session(primary_key=True),
    Column("failures", Integer, nullable=False, server_default=text("0")),
    _at("opened_at"),
    Column("last_error_code", Text),
    _at("updated_at", set_now=True),
    Index("ix_breakers_open", "opened_at", postgresql_where=text("opened_at IS NOT NULL")),
)

hooks = Table(  # HTTP hooks; plugins are installed, not stored
    "hooks",
    metadata,
    Column("id", UUID(as_uuid=False), primary_key=True, server_default=text("uuidv7()")),  # grows with time
    _tenant(),
    Column("event", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("secret", LargeBinary, nullable=False),  # packed by store.bodies; it signs, so it cannot be a hash
    Column("timeout_s", Double, nullable=False),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    _at("created_at", set_now=True),
    CheckConstraint("event IN ('pre_compact','session_start')", name="event"),
    Index("ix_hooks_tenant_id_id", "tenant_id", "id"),
)

webhook_endpoints = Table(
    "webhook_endpoints",
    metadata,
    Column("id", UUID(as_uuid=False), primary_key=True, server_default=text("uuidv7()")),  # grows with time
    _tenant(),
    Column("url", Text, nullable=False),
    Column("events", ARRAY(Text), nullable=False),
    Column("secret", LargeBinary, nullable=False),  # packed by store.bodies; it signs, so it cannot be a hash
    Column("old_secret", LargeBinary),  # signs too, until old_secret_until
    _at("old_secret_until"),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    Column("disabled_reason", Text),  # owner, failing or gone
    _at("failing_since"),  # the first failure after the last success
    _at("created_at", set_now=True),
    _at("updated_at", set_now=True),
    Index("ix_webhook_endpoints_tenant_id_id", "tenant_id", "id"),
)

webhook_deliveries = Table(  # the outbox, and after that the log
    "webhook_deliveries",
    metadata,
    Column("id", UUID(as_uuid=False), primary_key=True, server_default=text("uuidv7()")),  # the webhook-id
    # No foreign keys: an endpoint that is taken away at this moment must not refuse the commit of a job's end.
    Column("tenant_id", BigInteger, nullable=False),
    Column("endpoint_id", UUID(as_uuid=False), nullable=False),
    Column("job_id", UUID(as_uuid=False)),  # None for a ping; the log outlives the job
    Column("event", Text, nullable=False),
    _json("payload", required=True),  # what is sent: ids, status and code
    Column("status", Text, nullable=False, server_default=text("'pending'")),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    _at("not_before", set_now=True),
    Column("last_error", Text),  # a code of ours
    Column("last_status", Integer),  # the receiver's HTTP status
    _at("created_at", set_now=True),
    _at("ended_at"),
    CheckConstraint("status IN ('pending','delivered','failed','dropped')", name="status"),
    Index("ix_webhook_deliveries_due", "tenant_id", "not_before", "id", postgresql_where=text("status = 'pending'")),
    Index("ix_webhook_deliveries_endpoint_id_id", "endpoint_id", "id"),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    _tenant(primary_key=True),
    Column("key", Text, primary_key=True),
    Column("request_hash", LargeBinary, nullable=False),
    Column("status", Integer),  # None while the first request is still at work
    Column("response", LargeBinary),
    _at("created_at", set_now=True),
    Index("ix_idempotency_keys_created_at", "created_at"),
)

workers = Table(
    "workers",
    metadata,
    Column("owner", Text, primary_key=True),  # host:pid:start, unique per process start
    Column("slots", Integer, nullable=False),
    Column("running", Integer, nullable=False),
    Column("loop_lag_seconds", Numeric(10, 4), nullable=False),
    Column("draining", Boolean, nullable=False, server_default=text("false")),
    _at("started_at", set_now=True),
    _at("beat_at", set_now=True),
    Column("provider", Text),  # whose credential it uses (provider_pauses.provider); None: it calls nobody
    Index("ix_workers_beat_at", "beat_at"),
)

provider_pauses = Table(  # core.pausing draws the phases; a provider that never failed has no row
    "provider_pauses",
    metadata,
    Column("provider", Text, primary_key=True),  # the summarizer's name and a fingerprint of its credential
    Column("phase", Text, nullable=False),
    Column("reason", Text),  # the error code that paused it; kept for people when it is open again
    Column("trips", Integer, nullable=False, server_default=text("0")),  # pauses in a row without an answered call
    Column("probes", Integer, nullable=False, server_default=text("0")),  # failed probes of this pause
    _at("probe_at"),  # when the next probe is due
    _at("paused_at"),
    _at("changed_at", set_now=True),  # when the phase began
    Column("trial_token", BigInteger),  # leases with a larger token belong to the trial
    CheckConstraint("phase IN ('open','paused','trial')", name="phase"),
)

queue_depths = Table(  # how many jobs waited a moment ago: an enqueue adds what came since, and never counts them all
    "queue_depths",
    metadata,
    Column("tenant_id", BigInteger, primary_key=True, autoincrement=False),  # 0: all tenants together
    Column("waiting", BigInteger, nullable=False),
    Column("through_id", UUID(as_uuid=False), nullable=False),  # jobs with a larger id came later
    Column("taken_per_second", Double, nullable=False, server_default=text("0")),  # claims, lately
    Column("last_token", BigInteger, nullable=False, server_default=text("0")),
    _at("at", set_now=True),
)

session_state = Table(
    "session_state",
    metadata,
    _session(primary_key=True),
    Column("kind", Text, primary_key=True),  # files, plans, plan_mode, skills, memory, tools, agents, …
    Column("key", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    _at("updated_at", set_now=True),
)
