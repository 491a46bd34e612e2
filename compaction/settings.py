"""Every setting of the product, built once from a mapping at the edge; a wrong value fails at start with its name.

Names are environment variables. Those without the COMPACTD_ prefix are shared with the systems our users come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from compaction.core import addresses, hooks, jobs, rate_window, webhooks
from compaction.core.addresses import AddressRules, Allowance
from compaction.core.backpressure import Caps
from compaction.core.body_keys import BodyKey, parse_body_keys
from compaction.core.rate_window import Limits, Rates
from compaction.errors import CompactdError

BEATS_PER_LEASE = 3  # two beats may be lost before a living worker loses its jobs (facts/queue.md §3.1)

Port = Annotated[int, Field(ge=0, le=65_535)]
Allowed = Annotated[Allowance, BeforeValidator(addresses.parse_allowance)]
BodyKeys = Annotated[tuple[BodyKey, ...], BeforeValidator(parse_body_keys)]
Ports = Annotated[frozenset[int] | None, BeforeValidator(addresses.parse_ports)]


class SettingsError(CompactdError):
    """A setting has a wrong value."""

    code = "invalid_settings"


class Settings(BaseModel):
    """The settings, frozen. Units stand last in the names; defaults name their origin."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=False, hide_input_in_errors=True)

    database_url: str = Field(
        alias="COMPACTD_DATABASE_URL", repr=False
    )  # postgresql+psycopg://user:password@host:port/name
    redis_url: str = Field(alias="COMPACTD_REDIS_URL", repr=False)  # redis://:password@host:port/0
    host: str = Field("127.0.0.1", alias="COMPACTD_HOST")
    port: Port = Field(8080, alias="COMPACTD_PORT")
    ready_file: str | None = Field(None, alias="COMPACTD_READY_FILE")  # touched when the process can work
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", alias="COMPACTD_LOG_LEVEL")
    bootstrap_api_key: str | None = Field(  # made valid on start, once
        None, alias="COMPACTD_BOOTSTRAP_API_KEY", repr=False
    )
    key_pepper: str = Field(
        "", alias="COMPACTD_KEY_PEPPER", repr=False
    )  # mixed into key hashes; changing it voids all keys
    dashboard_secret: str = Field("", alias="COMPACTD_DASHBOARD_SECRET", repr=False)  # signs cookies; else the pepper
    body_keys: BodyKeys = Field((), alias="COMPACTD_BODY_KEYS", repr=False)  # id:base64,…; the first one writes

    max_body_bytes: int = Field(64 * 2**20, alias="COMPACTD_MAX_BODY_BYTES", ge=1024)  # DESIGN §8
    max_request_bytes: int = Field(  # a body without messages: 20,000 characters of instructions, 16 KiB of metadata
        2**20, alias="COMPACTD_MAX_REQUEST_BYTES", ge=1024
    )
    max_parameter_bytes: int = Field(  # a session's system prompt and tools: eight times what fills a window of 200,000
        8 * 2**20, alias="COMPACTD_MAX_PARAMETER_BYTES", ge=1024
    )
    max_import_bytes: int = Field(512 * 2**20, alias="COMPACTD_MAX_IMPORT_BYTES", ge=1024)  # 5 × the largest real log
    max_wait_seconds: float = Field(60.0, alias="COMPACTD_MAX_WAIT_SECONDS", ge=0, le=600)  # below proxies' idle limits
    database_pool: int = Field(10, alias="COMPACTD_DATABASE_POOL", ge=1, le=200)  # facts/queue.md §4

    key_requests_per_minute: int | None = Field(None, alias="COMPACTD_KEY_REQUESTS_PER_MINUTE", ge=1)  # None: no limit

    worker_concurrency: int = Field(300, alias="COMPACTD_WORKER_CONCURRENCY", ge=1, le=2_000)  # DESIGN §8
    drain_seconds: float = Field(120.0, alias="COMPACTD_DRAIN_SECONDS", ge=0)  # facts/queue.md §3.5
    lease_seconds: float = Field(60.0, alias="COMPACTD_LEASE_SECONDS", ge=1)  # facts/queue.md §3.1
    heartbeat_seconds: float = Field(10.0, alias="COMPACTD_HEARTBEAT_SECONDS", gt=0)  # facts/queue.md §3.1
    reconcile_seconds: float = Field(1.0, alias="COMPACTD_RECONCILE_SECONDS", gt=0)  # how soon a lost doorbell is heard
    redispatch_seconds: float = Field(30.0, alias="COMPACTD_REDISPATCH_SECONDS", gt=0)  # facts/queue.md §3.2
    job_timeout_seconds: float = Field(900.0, alias="COMPACTD_JOB_TIMEOUT_SECONDS", gt=0)  # one attempt, wall clock
    backoff_base_seconds: float = Field(  # before the first retry; each further one waits twice as long
        jobs.BACKOFF_BASE_SECONDS, alias="COMPACTD_BACKOFF_BASE_SECONDS", gt=0, le=jobs.BACKOFF_CAP_SECONDS
    )

    metrics_port: Port | None = Field(None, alias="COMPACTD_METRICS_PORT")  # of each worker; 0: any free one

    worker_max_rss_mb: int | None = Field(None, alias="COMPACTD_WORKER_MAX_RSS_MB", ge=64)  # over it: drain and end

    tenant_waiting_jobs: int = Field(100_000, alias="COMPACTD_TENANT_WAITING_JOBS", ge=1)  # ten archives of 10,000
    waiting_jobs: int = Field(500_000, alias="COMPACTD_WAITING_JOBS", ge=1)  # ten times what the queue is measured with
    retention_days: float = Field(30.0, alias="COMPACTD_RETENTION_DAYS", ge=0)  # of ended jobs; 0: for ever
    idempotency_days: float = Field(30.0, alias="COMPACTD_IDEMPOTENCY_DAYS", ge=0)  # of keys; 0: for ever

    limit_requests: int | None = Field(None, alias="COMPACTD_LIMIT_REQUESTS_PER_MINUTE", ge=1)
    limit_input_tokens: int | None = Field(None, alias="COMPACTD_LIMIT_INPUT_TOKENS_PER_MINUTE", ge=1)
    limit_output_tokens: int | None = Field(None, alias="COMPACTD_LIMIT_OUTPUT_TOKENS_PER_MINUTE", ge=1)
    limit_tenant_calls: int | None = Field(None, alias="COMPACTD_LIMIT_TENANT_IN_FLIGHT", ge=1)
    limit_window_seconds: float = Field(  # for a provider that counts by another time than the minute
        rate_window.WINDOW_SECONDS, alias="COMPACTD_LIMIT_WINDOW_SECONDS", ge=1, le=3600
    )

    summarizer: Literal["auto", "claude", "extractive"] = Field("auto", alias="COMPACTD_SUMMARIZER")
    summary_model: str | None = Field(None, alias="COMPACTD_SUMMARY_MODEL")  # None: the session's own model
    shared_prefix: bool = Field(default=True, alias="COMPACTD_SHARED_PREFIX")  # off: every summary is a fresh request
    fallback_model: str | None = Field(None, alias="COMPACTD_FALLBACK_MODEL")  # asked once when a model refuses
    anthropic_api_key: str | None = Field(None, alias="ANTHROPIC_API_KEY", repr=False)
    anthropic_auth_token: str | None = Field(None, alias="ANTHROPIC_AUTH_TOKEN", repr=False)
    anthropic_base_url: str | None = Field(None, alias="ANTHROPIC_BASE_URL", repr=False)  # it may hold a password
    call_timeout_seconds: float = Field(600.0, alias="COMPACTD_CALL_TIMEOUT_SECONDS", gt=0)  # the SDK's own default
    idle_timeout_seconds: float = Field(90.0, alias="COMPACTD_IDLE_TIMEOUT_SECONDS", gt=0)  # pings come every few s

    batch_max_bytes: int = Field(  # of one Message Batch: it is held in memory; the API takes 256 MB
        32 * 2**20, alias="COMPACTD_BATCH_MAX_BYTES", ge=2**20, le=256 * 10**6
    )
    batch_poll_seconds: float = Field(30.0, alias="COMPACTD_BATCH_POLL_SECONDS", gt=0)  # most batches take minutes
    batch_grace_seconds: float = Field(  # until a batch that was about to be sent is taken for not sent
        120.0, alias="COMPACTD_BATCH_GRACE_SECONDS", gt=0
    )

    hook_allow_private: Allowed = Field(Allowance(), alias="COMPACTD_HOOK_ALLOW_PRIVATE")  # true or networks
    hook_ports: Ports = Field(addresses.WEB_PORTS, alias="COMPACTD_HOOK_PORTS")  # None: any
    hook_plugin_seconds: float = Field(  # one plugin's answer
        hooks.DEFAULT_TIMEOUT_SECONDS,
        alias="COMPACTD_HOOK_PLUGIN_SECONDS",
        ge=hooks.MIN_TIMEOUT_SECONDS,
        le=hooks.MAX_TIMEOUT_SECONDS,
    )

    webhook_timeout_seconds: float = Field(
        15.0, alias="COMPACTD_WEBHOOK_TIMEOUT_SECONDS", gt=0, le=60
    )  # as the spec says
    webhook_backoff_seconds: float = Field(  # before the first retry; each further one waits four times as long
        webhooks.BACKOFF_BASE_SECONDS,
        alias="COMPACTD_WEBHOOK_BACKOFF_SECONDS",
        gt=0,
        le=webhooks.BACKOFF_CAP_SECONDS,
    )
    webhook_disable_days: float = Field(  # failing for so long, an endpoint is switched off
        webhooks.DISABLE_DAYS, alias="COMPACTD_WEBHOOK_DISABLE_DAYS", gt=0
    )

    otlp_endpoint: str | None = Field(  # the collector of traces, OTLP over HTTP; OpenTelemetry's own name for it
        None, alias="OTEL_EXPORTER_OTLP_ENDPOINT", pattern=r"^https?://", repr=False
    )

    disable_compact: bool = Field(default=False, alias="DISABLE_COMPACT")
    disable_auto_compact: bool = Field(default=False, alias="DISABLE_AUTO_COMPACT")
    auto_compact_window: str | None = Field(None, alias="CLAUDE_CODE_AUTO_COMPACT_WINDOW")  # garbage is ignored
    autocompact_percent: str | None = Field(None, alias="CLAUDE_AUTOCOMPACT_PCT_OVERRIDE")  # garbage is ignored
    time_based_micro_ms: int = Field(300_000, alias="CLAUDE_CODE_TIME_BASED_MC_THRESHOLD_MS", ge=0)  # DESIGN §3: 5 min
    breaker_cooldown_seconds: float | None = Field(None, alias="COMPACTD_BREAKER_COOLDOWN_SECONDS", gt=0)

    @model_validator(mode="after")
    def _beats_fit_the_lease(self) -> Self:
        if self.heartbeat_seconds * BEATS_PER_LEASE > self.lease_seconds:
            raise ValueError(
                f"COMPACTD_LEASE_SECONDS must be at least {BEATS_PER_LEASE} times COMPACTD_HEARTBEAT_SECONDS"
            )
        return self

    @property
    def hook_rules(self) -> AddressRules:
        """Where HTTP hooks may go."""
        return AddressRules(self.hook_allow_private, self.hook_ports)

    @property
    def caps(self) -> Caps:
        """How many jobs may wait."""
        return Caps(self.tenant_waiting_jobs, self.waiting_jobs)

    @property
    def limits(self) -> Limits:
        """What may be used of the model's API."""
        rates = Rates(self.limit_requests, self.limit_input_tokens, self.limit_output_tokens)
        return Limits(rates, self.limit_tenant_calls, self.limit_window_seconds)

    @property
    def uses_claude(self) -> bool:
        """Whether summaries come from Claude: asked for, or possible because a credential is there."""
        has_key = bool(self.anthropic_api_key or self.anthropic_auth_token)
        return self.summarizer == "claude" or (self.summarizer == "auto" and has_key)


def settings_from(environment: Mapping[str, str]) -> Settings:
    """The settings in `environment`; empty values count as unset. Raises SettingsError naming each wrong variable."""
    given = {name: value for name, value in environment.items() if value != ""}
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        problems = "; ".join(": ".join([*map(str, item["loc"]), item["msg"]]) for item in error.errors())
        raise SettingsError(f"Wrong settings: {problems}. See .env.example.") from None
