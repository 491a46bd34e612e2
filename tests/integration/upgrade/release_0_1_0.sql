-- What release 0.1.0 asks of the database (make record-release).
-- revision: 0006
-- column: provider_pauses.provider text not null
-- column: provider_pauses.phase text not null
-- column: provider_pauses.reason text
-- column: provider_pauses.trips integer not null
-- column: provider_pauses.probes integer not null
-- column: provider_pauses.probe_at timestamp with time zone
-- column: provider_pauses.paused_at timestamp with time zone
-- column: provider_pauses.changed_at timestamp with time zone not null
-- column: provider_pauses.trial_token bigint
-- column: queue_depths.tenant_id bigint not null
-- column: queue_depths.waiting bigint not null
-- column: queue_depths.through_id uuid not null
-- column: queue_depths.taken_per_second double precision not null
-- column: queue_depths.last_token bigint not null
-- column: queue_depths.at timestamp with time zone not null
-- column: tenants.id bigint not null
-- column: tenants.name text not null
-- column: tenants.created_at timestamp with time zone not null
-- column: webhook_deliveries.id uuid not null
-- column: webhook_deliveries.tenant_id bigint not null
-- column: webhook_deliveries.endpoint_id uuid not null
-- column: webhook_deliveries.job_id uuid
-- column: webhook_deliveries.event text not null
-- column: webhook_deliveries.payload jsonb not null
-- column: webhook_deliveries.status text not null
-- column: webhook_deliveries.attempts integer not null
-- column: webhook_deliveries.not_before timestamp with time zone not null
-- column: webhook_deliveries.last_error text
-- column: webhook_deliveries.last_status integer
-- column: webhook_deliveries.created_at timestamp with time zone not null
-- column: webhook_deliveries.ended_at timestamp with time zone
-- column: workers.owner text not null
-- column: workers.slots integer not null
-- column: workers.running integer not null
-- column: workers.loop_lag_seconds numeric(10, 4) not null
-- column: workers.draining boolean not null
-- column: workers.started_at timestamp with time zone not null
-- column: workers.beat_at timestamp with time zone not null
-- column: workers.provider text
-- column: api_keys.id bigint not null
-- column: api_keys.tenant_id bigint not null
-- column: api_keys.public_id text not null
-- column: api_keys.secret_hash bytea not null
-- column: api_keys.scopes text[] not null
-- column: api_keys.created_at timestamp with time zone not null
-- column: api_keys.expires_at timestamp with time zone
-- column: api_keys.last_used_at timestamp with time zone
-- column: api_keys.revoked_at timestamp with time zone
-- column: hooks.id uuid not null
-- column: hooks.tenant_id bigint not null
-- column: hooks.event text not null
-- column: hooks.url text not null
-- column: hooks.secret bytea not null
-- column: hooks.timeout_s double precision not null
-- column: hooks.enabled boolean not null
-- column: hooks.created_at timestamp with time zone not null
-- column: idempotency_keys.tenant_id bigint not null
-- column: idempotency_keys.key text not null
-- column: idempotency_keys.request_hash bytea not null
-- column: idempotency_keys.status integer
-- column: idempotency_keys.response bytea
-- column: idempotency_keys.created_at timestamp with time zone not null
-- column: sessions.id bigint not null
-- column: sessions.tenant_id bigint not null
-- column: sessions.name text not null
-- column: sessions.model text not null
-- column: sessions.query_source text
-- column: sessions.parameters bytea
-- column: sessions.settings jsonb not null
-- column: sessions.head_seq bigint not null
-- column: sessions.boundary_seq bigint not null
-- column: sessions.live_job_id uuid
-- column: sessions.created_at timestamp with time zone not null
-- column: sessions.updated_at timestamp with time zone not null
-- column: webhook_endpoints.id uuid not null
-- column: webhook_endpoints.tenant_id bigint not null
-- column: webhook_endpoints.url text not null
-- column: webhook_endpoints.events text[] not null
-- column: webhook_endpoints.secret bytea not null
-- column: webhook_endpoints.old_secret bytea
-- column: webhook_endpoints.old_secret_until timestamp with time zone
-- column: webhook_endpoints.enabled boolean not null
-- column: webhook_endpoints.disabled_reason text
-- column: webhook_endpoints.failing_since timestamp with time zone
-- column: webhook_endpoints.created_at timestamp with time zone not null
-- column: webhook_endpoints.updated_at timestamp with time zone not null
-- column: breakers.session_id bigint not null
-- column: breakers.failures integer not null
-- column: breakers.opened_at timestamp with time zone
-- column: breakers.last_error_code text
-- column: breakers.updated_at timestamp with time zone not null
-- column: jobs.id uuid not null
-- column: jobs.tenant_id bigint not null
-- column: jobs.session_id bigint not null
-- column: jobs.status text not null
-- column: jobs.trigger text not null
-- column: jobs.scope_kind text not null
-- column: jobs.scope_uuid text
-- column: jobs.instructions text
-- column: jobs.strategy text
-- column: jobs.fallback text
-- column: jobs.force boolean not null
-- column: jobs.token_gap bigint
-- column: jobs.metadata jsonb not null
-- column: jobs.priority smallint not null
-- column: jobs.not_before timestamp with time zone not null
-- column: jobs.deadline_at timestamp with time zone
-- column: jobs.attempt integer not null
-- column: jobs.max_attempts integer not null
-- column: jobs.crashes integer not null
-- column: jobs.model_calls integer not null
-- column: jobs.coalesced integer not null
-- column: jobs.lease_token bigint
-- column: jobs.lease_owner text
-- column: jobs.lease_expires_at timestamp with time zone
-- column: jobs.dispatched_at timestamp with time zone
-- column: jobs.cancel_requested_at timestamp with time zone
-- column: jobs.covers_through_seq bigint
-- column: jobs.progress jsonb not null
-- column: jobs.paid_summary bytea
-- column: jobs.was_compacted boolean
-- column: jobs.reason text
-- column: jobs.error jsonb
-- column: jobs.traceparent text
-- column: jobs.created_at timestamp with time zone not null
-- column: jobs.started_at timestamp with time zone
-- column: jobs.ended_at timestamp with time zone
-- column: jobs.snoozes integer not null
-- column: messages.session_id bigint not null
-- column: messages.seq bigint not null
-- column: messages.uuid text
-- column: messages.role text not null
-- column: messages.partial boolean not null
-- column: messages.starts_live boolean not null
-- column: messages.body_bytes integer not null
-- column: messages.body bytea not null
-- column: messages.stored_at timestamp with time zone not null
-- column: messages.off_branch boolean not null
-- column: session_state.session_id bigint not null
-- column: session_state.kind text not null
-- column: session_state.key text not null
-- column: session_state.body bytea not null
-- column: session_state.updated_at timestamp with time zone not null
-- column: attempts.job_id uuid not null
-- column: attempts.lease_token bigint not null
-- column: attempts.attempt integer not null
-- column: attempts.owner text not null
-- column: attempts.started_at timestamp with time zone not null
-- column: attempts.ended_at timestamp with time zone
-- column: attempts.outcome text
-- column: attempts.error jsonb
-- column: attempts.usage jsonb
-- column: job_events.id bigint not null
-- column: job_events.job_id uuid not null
-- column: job_events.at timestamp with time zone not null
-- column: job_events.type text not null
-- column: job_events.data jsonb not null
-- column: results.job_id uuid not null
-- column: results.session_id bigint not null
-- column: results.lease_token bigint not null
-- column: results.strategy text not null
-- column: results.model text
-- column: results.pre_tokens bigint not null
-- column: results.post_tokens bigint not null
-- column: results.usage jsonb not null
-- column: results.cost_usd numeric(14, 6)
-- column: results.ptl_attempts integer not null
-- column: results.dropped jsonb not null
-- column: results.context_management jsonb
-- column: results.covers_through_seq bigint not null
-- column: results.prefix_hash text not null
-- column: results.degraded boolean not null
-- column: results.hook_results jsonb not null
-- column: results.body bytea not null
-- column: results.created_at timestamp with time zone not null
-- column: results.applied_at timestamp with time zone
-- column: results.applied_through_seq bigint

-- statement: branches._LOCK
SELECT sessions.id
FROM sessions
WHERE sessions.id = $1::BIGINT FOR NO KEY UPDATE;

-- statement: branches._MARK
UPDATE messages SET off_branch=$1 WHERE messages.session_id = $2::BIGINT AND messages.uuid = any($3::TEXT[]) AND messages.off_branch != $1 RETURNING messages.seq;

-- statement: branches._NEWEST_START
SELECT coalesce(max(messages.seq), 0) AS coalesce_1
FROM messages
WHERE messages.session_id = $1::BIGINT AND messages.starts_live AND NOT messages.off_branch;

-- statement: branches._SETTLE
UPDATE sessions SET boundary_seq=(SELECT coalesce(max(messages.seq), 0) AS coalesce_1
FROM messages
WHERE messages.session_id = $1::BIGINT AND messages.starts_live AND NOT messages.off_branch), updated_at=now() WHERE sessions.id = $1::BIGINT RETURNING sessions.boundary_seq;

-- statement: branches._DROP_RESULT
UPDATE sessions SET live_job_id=NULL FROM results WHERE sessions.id = $1::BIGINT AND results.job_id = sessions.live_job_id AND results.covers_through_seq >= $2::BIGINT;

-- statement: breakers._GET
SELECT breakers.failures, breakers.opened_at, breakers.last_error_code
FROM breakers
WHERE breakers.session_id = $1::BIGINT;

-- statement: breakers._RESET
UPDATE breakers SET failures=$1::INTEGER, opened_at=$2::TIMESTAMP WITH TIME ZONE, last_error_code=$3::VARCHAR, updated_at=now() WHERE breakers.session_id = $4::BIGINT;

-- statement: breakers._OPEN
SELECT breakers.session_id, sessions.name, breakers.failures, breakers.opened_at, breakers.last_error_code
FROM breakers JOIN sessions ON sessions.id = breakers.session_id
WHERE sessions.tenant_id = $1::BIGINT AND breakers.opened_at IS NOT NULL AND breakers.session_id > $2::BIGINT ORDER BY breakers.session_id
LIMIT $3::BIGINT;

-- statement: clock._NOW
SELECT clock_timestamp() AS clock_timestamp_1;

-- statement: deliveries._CLAIM
WITH RECURSIVE tenant(id) AS
(SELECT (SELECT webhook_deliveries.tenant_id
FROM webhook_deliveries
WHERE webhook_deliveries.status = 'pending' AND webhook_deliveries.tenant_id > $2::BIGINT ORDER BY webhook_deliveries.tenant_id
LIMIT 1) AS id UNION ALL SELECT (SELECT another.tenant_id
FROM webhook_deliveries AS another
WHERE another.status = 'pending' AND another.tenant_id > tenant.id ORDER BY another.tenant_id
LIMIT 1) AS anon_4
FROM tenant
WHERE tenant.id IS NOT NULL),
turn AS
(SELECT tenant.id AS id
FROM tenant
WHERE tenant.id IS NOT NULL
LIMIT 500),
picked AS
(SELECT oldest.id AS id
FROM turn JOIN LATERAL (SELECT webhook_deliveries.id AS id
FROM webhook_deliveries
WHERE webhook_deliveries.status = 'pending' AND webhook_deliveries.tenant_id = turn.id AND webhook_deliveries.not_before <= now() AND webhook_deliveries.endpoint_id != all($3::UUID[]) ORDER BY webhook_deliveries.not_before, webhook_deliveries.id
LIMIT $4::INTEGER FOR UPDATE SKIP LOCKED) AS oldest ON true
WHERE turn.id != all($5::BIGINT[])
LIMIT $6::INTEGER),
claimed AS
(UPDATE webhook_deliveries SET attempts=(webhook_deliveries.attempts + 1), not_before=(now() + $1 * interval '1 second') FROM picked WHERE webhook_deliveries.id = picked.id RETURNING webhook_deliveries.id, webhook_deliveries.tenant_id, webhook_deliveries.endpoint_id, webhook_deliveries.job_id, webhook_deliveries.event, webhook_deliveries.payload, webhook_deliveries.status, webhook_deliveries.attempts, webhook_deliveries.not_before, webhook_deliveries.last_error, webhook_deliveries.last_status, webhook_deliveries.created_at, webhook_deliveries.ended_at)
SELECT claimed.id, claimed.tenant_id, tenants.name, claimed.endpoint_id, claimed.event, claimed.payload, claimed.attempts, CAST(EXTRACT(epoch FROM now() - claimed.created_at) AS DOUBLE PRECISION) AS anon_1, coalesce(CAST(EXTRACT(epoch FROM now() - webhook_endpoints.failing_since) AS DOUBLE PRECISION), 0.0) AS coalesce_1, CASE WHEN webhook_endpoints.enabled THEN webhook_endpoints.url END AS anon_2, webhook_endpoints.secret, CASE WHEN (webhook_endpoints.old_secret_until > now()) THEN webhook_endpoints.old_secret END AS anon_3
FROM claimed JOIN tenants ON tenants.id = claimed.tenant_id LEFT OUTER JOIN webhook_endpoints ON webhook_endpoints.id = claimed.endpoint_id;

-- statement: deliveries._SETTLE
WITH settled AS
(UPDATE webhook_deliveries SET status=$1::VARCHAR, not_before=CASE WHEN ($1::VARCHAR = 'pending') THEN now() + $2 * interval '1 second' ELSE webhook_deliveries.not_before END, last_error=$3::VARCHAR, last_status=$4::INTEGER, ended_at=CASE WHEN ($1::VARCHAR = 'pending') THEN NULL ELSE now() END WHERE webhook_deliveries.id = $5::UUID AND webhook_deliveries.attempts = $6::INTEGER AND webhook_deliveries.status = 'pending' RETURNING webhook_deliveries.endpoint_id, webhook_deliveries.status)
SELECT settled.endpoint_id
FROM settled;

-- statement: deliveries._STAND
UPDATE webhook_endpoints SET enabled=CASE WHEN ($1::VARCHAR IS NOT NULL) THEN false ELSE webhook_endpoints.enabled END, disabled_reason=coalesce($1::VARCHAR, webhook_endpoints.disabled_reason), failing_since=CASE WHEN ($2::VARCHAR IS NULL) THEN NULL ELSE coalesce(webhook_endpoints.failing_since, now()) END WHERE webhook_endpoints.id = $3::UUID AND ($2::VARCHAR IS NOT NULL OR webhook_endpoints.failing_since IS NOT NULL);

-- statement: deliveries._DROP_WAITING
UPDATE webhook_deliveries SET status='dropped', last_error=coalesce(webhook_deliveries.last_error, 'endpoint_disabled'), ended_at=now() WHERE webhook_deliveries.endpoint_id = $1::UUID AND webhook_deliveries.status = 'pending';

-- statement: delivery_log._LOG
SELECT webhook_deliveries.id, webhook_deliveries.endpoint_id, webhook_deliveries.job_id, webhook_deliveries.event, webhook_deliveries.status, webhook_deliveries.attempts, webhook_deliveries.not_before, webhook_deliveries.last_error, webhook_deliveries.last_status, webhook_deliveries.created_at, webhook_deliveries.ended_at
FROM webhook_deliveries
WHERE webhook_deliveries.endpoint_id = $1::UUID AND webhook_deliveries.tenant_id = $2::BIGINT;

-- statement: delivery_log._GET
SELECT webhook_deliveries.id, webhook_deliveries.endpoint_id, webhook_deliveries.job_id, webhook_deliveries.event, webhook_deliveries.status, webhook_deliveries.attempts, webhook_deliveries.not_before, webhook_deliveries.last_error, webhook_deliveries.last_status, webhook_deliveries.created_at, webhook_deliveries.ended_at
FROM webhook_deliveries
WHERE webhook_deliveries.id = $1::UUID AND webhook_deliveries.tenant_id = $2::BIGINT;

-- statement: delivery_log._PRUNE
DELETE FROM webhook_deliveries WHERE webhook_deliveries.id IN (SELECT webhook_deliveries.id
FROM webhook_deliveries
WHERE webhook_deliveries.id < uuidv7(-($1 * interval '1 second')) AND webhook_deliveries.status != 'pending' ORDER BY webhook_deliveries.id
LIMIT $2::INTEGER);

-- statement: depths._LOCK
SELECT pg_try_advisory_xact_lock(1668314212, 3) AS pg_try_advisory_xact_lock_1, EXISTS (SELECT *
FROM queue_depths
WHERE queue_depths.tenant_id = 0 AND queue_depths.at > now() - interval '2.0 seconds') AS anon_1;

-- statement: depths._CLEAR
DELETE FROM queue_depths WHERE queue_depths.at < now() AND queue_depths.tenant_id != 0;

-- statement: depths._COUNT
WITH anon_3 AS MATERIALIZED
(SELECT uuidv7(interval '-1.0 seconds') AS through_id),
anon_6 AS
(SELECT jobs.tenant_id AS tenant_id, count(*) AS waiting
FROM jobs
WHERE jobs.status = 'queued' AND jobs.id <= (SELECT anon_3.through_id
FROM anon_3) GROUP BY jobs.tenant_id)
INSERT INTO queue_depths (tenant_id, waiting, through_id, taken_per_second, last_token) SELECT anon_1.tenant_id, anon_1.waiting, (SELECT anon_3.through_id
FROM anon_3) AS anon_2, coalesce((SELECT (1 - 0.5) * queue_depths.taken_per_second + 0.5 * (((SELECT last_value
FROM lease_tokens) - queue_depths.last_token) / CAST(greatest(CAST(EXTRACT(epoch FROM now() - queue_depths.at) AS DOUBLE PRECISION), 0.1) AS NUMERIC)) AS anon_4
FROM queue_depths
WHERE queue_depths.tenant_id = 0), 0) AS coalesce_1, (SELECT last_value
FROM lease_tokens) AS anon_5
FROM (SELECT anon_6.tenant_id AS tenant_id, anon_6.waiting AS waiting
FROM anon_6
WHERE anon_6.waiting >= 500 UNION ALL SELECT 0, coalesce(CAST(sum(anon_6.waiting) AS BIGINT), 0) AS coalesce_2
FROM anon_6) AS anon_1 ON CONFLICT (tenant_id) DO UPDATE SET waiting = excluded.waiting, through_id = excluded.through_id, taken_per_second = excluded.taken_per_second, last_token = excluded.last_token, at = now();

-- statement: depths._REFUSED
SELECT CASE WHEN ($1::BIGINT IS NULL) THEN false ELSE $1::BIGINT - coalesce((SELECT queue_depths.waiting
FROM queue_depths
WHERE queue_depths.tenant_id = $2::BIGINT), 0) <= 0 OR (EXISTS (SELECT 1
FROM jobs AS newer
WHERE newer.status = 'queued' AND (newer.tenant_id, newer.id) > ($2::BIGINT, coalesce((SELECT queue_depths.through_id
FROM queue_depths
WHERE queue_depths.tenant_id = $2::BIGINT), '00000000-0000-0000-0000-000000000000'::uuid)) AND newer.tenant_id <= $2::BIGINT ORDER BY newer.tenant_id, newer.id
LIMIT 1 OFFSET greatest(($1::BIGINT - coalesce((SELECT queue_depths.waiting
FROM queue_depths
WHERE queue_depths.tenant_id = $2::BIGINT), 0)) - 1, 0))) END AS anon_1, coalesce((SELECT queue_depths.waiting
FROM queue_depths
WHERE queue_depths.tenant_id = $2::BIGINT), $1::BIGINT) AS coalesce_1, coalesce((SELECT queue_depths.waiting
FROM queue_depths
WHERE queue_depths.tenant_id = 0), $3::BIGINT) AS coalesce_2, coalesce((SELECT queue_depths.taken_per_second
FROM queue_depths
WHERE queue_depths.tenant_id = 0), 0.0) AS coalesce_3;

-- statement: dispatching._RUNNING
SELECT jobs.tenant_id, jobs.priority, count(*) AS count_1
FROM jobs
WHERE jobs.status = 'running' GROUP BY jobs.tenant_id, jobs.priority;

-- statement: dispatching._RUNNING_SINCE
SELECT count(*) AS count_1
FROM jobs
WHERE jobs.status = 'running' AND jobs.lease_token > $1::BIGINT;

-- statement: dispatching._BY_INDEX
SELECT set_config('enable_sort', 'off', true) AS set_config_1, set_config('enable_incremental_sort', 'off', true) AS set_config_2;

-- statement: dispatching._TENANTS
WITH RECURSIVE tenant(id) AS
(SELECT (SELECT jobs.tenant_id
FROM jobs
WHERE jobs.status IN ('queued', 'retrying') AND jobs.tenant_id > $1::BIGINT ORDER BY jobs.tenant_id
LIMIT 1) AS id UNION ALL SELECT (SELECT another.tenant_id
FROM jobs AS another
WHERE another.status IN ('queued', 'retrying') AND another.tenant_id > tenant.id ORDER BY another.tenant_id
LIMIT 1) AS anon_1
FROM tenant
WHERE tenant.id IS NOT NULL)
SELECT tenant.id
FROM tenant
WHERE tenant.id IS NOT NULL
LIMIT $2::INTEGER;

-- statement: dispatching._CANDIDATES
SELECT oldest.id, anon_1.id AS id_1, anon_2.priority, CAST(EXTRACT(epoch FROM now() - oldest.not_before) AS DOUBLE PRECISION) AS anon_3
FROM unnest($1::BIGINT[]) AS anon_1(id) JOIN unnest(ARRAY[10,20,30]::smallint[]) AS anon_2(priority) ON true JOIN LATERAL (SELECT jobs.id AS id, jobs.not_before AS not_before
FROM jobs
WHERE jobs.status IN ('queued', 'retrying') AND (jobs.tenant_id, jobs.priority, jobs.not_before) >= (anon_1.id, anon_2.priority, '-infinity'::timestamptz) AND (jobs.tenant_id, jobs.priority, jobs.not_before) <= (anon_1.id, anon_2.priority, now()) AND jobs.cancel_requested_at IS NULL AND (jobs.deadline_at IS NULL OR jobs.deadline_at > now()) AND (jobs.dispatched_at IS NULL OR jobs.dispatched_at < greatest(now() - $2 * interval '1 second', (SELECT max(provider_pauses.changed_at) AS max_1
FROM provider_pauses
WHERE provider_pauses.phase != 'paused'))) AND (jobs.status = 'retrying' OR (SELECT true
FROM jobs AS other
WHERE other.session_id = jobs.session_id AND other.status IN ('running', 'retrying')
LIMIT 1) IS NOT true) ORDER BY jobs.tenant_id, jobs.priority, jobs.not_before, jobs.id
LIMIT $3::INTEGER) AS oldest ON true;

-- statement: dispatching._OTHERS_WAIT
SELECT (SELECT true
FROM jobs AS waiting
WHERE waiting.status IN ('queued', 'retrying') AND waiting.priority = 10 AND waiting.not_before <= now() AND (waiting.status = 'retrying' OR (SELECT true
FROM jobs AS other
WHERE other.session_id = waiting.session_id AND other.status IN ('running', 'retrying')
LIMIT 1) IS NOT true) ORDER BY waiting.not_before, waiting.id
LIMIT 1) IS NOT DISTINCT FROM true OR (SELECT true
FROM jobs AS waiting
WHERE waiting.status IN ('queued', 'retrying') AND waiting.priority = 20 AND waiting.not_before <= now() AND (waiting.status = 'retrying' OR (SELECT true
FROM jobs AS other
WHERE other.session_id = waiting.session_id AND other.status IN ('running', 'retrying')
LIMIT 1) IS NOT true) ORDER BY waiting.not_before, waiting.id
LIMIT 1) IS NOT DISTINCT FROM true AS anon_1;

-- statement: dispatching._MARK
WITH picked AS
(SELECT jobs.id AS id
FROM jobs
WHERE jobs.id = any($1::UUID[]) AND jobs.status IN ('queued', 'retrying') AND (jobs.dispatched_at IS NULL OR jobs.dispatched_at < greatest(now() - $2 * interval '1 second', (SELECT max(provider_pauses.changed_at) AS max_1
FROM provider_pauses
WHERE provider_pauses.phase != 'paused'))) FOR NO KEY UPDATE SKIP LOCKED),
marked AS
(UPDATE jobs SET dispatched_at=now() FROM picked WHERE jobs.id = picked.id RETURNING jobs.id)
SELECT marked.id
FROM marked;

-- statement: dispatching._FORGET_RING
UPDATE jobs SET dispatched_at=$1::TIMESTAMP WITH TIME ZONE WHERE jobs.id = $2::UUID AND jobs.status IN ('queued', 'retrying') AND jobs.dispatched_at IS NOT NULL;

-- statement: erasing._LOCK
SELECT sessions.id
FROM sessions
WHERE sessions.tenant_id = $1::BIGINT AND sessions.name = $2::VARCHAR FOR UPDATE;

-- statement: erasing._JOBS
SELECT jobs.id, jobs.status
FROM jobs
WHERE jobs.session_id = $1::BIGINT;

-- statement: erasing._RESULTS
SELECT count(*) AS count_1
FROM results
WHERE results.session_id = $1::BIGINT;

-- statement: erasing._DELIVERIES
DELETE FROM webhook_deliveries WHERE webhook_deliveries.tenant_id = $1::BIGINT AND (((webhook_deliveries.payload -> 'data') ->> 'session_id') = $2::VARCHAR OR webhook_deliveries.job_id = any($3::UUID[]));

-- statement: erasing._MESSAGES
DELETE FROM messages WHERE messages.session_id = $1::BIGINT AND messages.seq IN (SELECT oldest.seq
FROM (SELECT messages.seq AS seq
FROM messages
WHERE messages.session_id = $1::BIGINT ORDER BY messages.seq
LIMIT $2::INTEGER) AS oldest);

-- statement: erasing._SESSION
DELETE FROM sessions WHERE sessions.id = $1::BIGINT;

-- statement: erasing._ANSWERS
SELECT idempotency_keys.key, idempotency_keys.response
FROM idempotency_keys
WHERE idempotency_keys.tenant_id = $1::BIGINT AND idempotency_keys.key > $2::VARCHAR ORDER BY idempotency_keys.key
LIMIT $3::INTEGER;

-- statement: erasing._FORGET
DELETE FROM idempotency_keys WHERE idempotency_keys.tenant_id = $1::BIGINT AND idempotency_keys.key = any($2::TEXT[]);

-- statement: erasing._TELL
SELECT pg_notify('compactd_jobs', $1::VARCHAR) AS pg_notify_1;

-- statement: gauges._LIVE
SELECT jobs.status, jobs.trigger, count(*) AS count_1
FROM jobs
WHERE jobs.status IN ('queued', 'running', 'retrying') GROUP BY jobs.status, jobs.trigger;

-- statement: gauges._OLDEST
SELECT jobs.trigger, CAST(EXTRACT(epoch FROM now() - min(greatest(jobs.created_at, jobs.not_before))) AS DOUBLE PRECISION) AS anon_1
FROM jobs
WHERE jobs.status IN ('queued', 'retrying') AND jobs.not_before <= now() GROUP BY jobs.trigger;

-- statement: gauges._OPEN
SELECT count(*) AS count_1
FROM breakers
WHERE breakers.opened_at IS NOT NULL;

-- statement: gauges._PROVIDERS
SELECT provider_pauses.provider, provider_pauses.phase
FROM provider_pauses;

-- statement: gauges._PENDING
SELECT count(*) AS count_1
FROM webhook_deliveries
WHERE webhook_deliveries.status = 'pending';

-- statement: histories._LOCK
SELECT sessions.head_seq, sessions.boundary_seq
FROM sessions
WHERE sessions.id = $1::BIGINT FOR NO KEY UPDATE;

-- statement: histories._KNOWN
SELECT messages.uuid, messages.seq, messages.partial
FROM messages
WHERE messages.session_id = $1::BIGINT AND messages.uuid = any($2::TEXT[]);

-- statement: histories._COVERED
SELECT greatest((SELECT max(jobs.covers_through_seq) AS max_1
FROM jobs
WHERE jobs.session_id = $1::BIGINT AND jobs.status IN ('running', 'retrying')), (SELECT max(results.covers_through_seq) AS max_2
FROM results, sessions
WHERE results.job_id = sessions.live_job_id AND sessions.id = $1::BIGINT), 0) AS greatest_1;

-- statement: histories._HEAD
UPDATE sessions SET head_seq=$1::BIGINT, boundary_seq=$2::BIGINT, updated_at=now() WHERE sessions.id = $3::BIGINT;

-- statement: histories._ADD
WITH added AS
(INSERT INTO messages (session_id, seq, uuid, role, partial, starts_live, body_bytes, body) SELECT $3::BIGINT AS anon_1, batch.seq AS seq, batch.uuid AS uuid, batch.role AS role, batch.partial AS partial, batch.starts_live AS starts_live, batch.body_bytes AS body_bytes, batch.body AS body
FROM unnest($4::TEXT[], $5::TEXT[], $6::BOOLEAN[], $7::BOOLEAN[], $8::INTEGER[], $9::BYTEA[], $10::BIGINT[]) AS batch(uuid, role, partial, starts_live, body_bytes, body, seq))
UPDATE sessions SET head_seq=$1::BIGINT, boundary_seq=$2::BIGINT, updated_at=now() WHERE sessions.id = $3::BIGINT;

-- statement: histories._REPLACE
UPDATE messages SET uuid=batch.uuid, role=batch.role, partial=batch.partial, starts_live=batch.starts_live, body_bytes=batch.body_bytes, body=batch.body FROM unnest($1::TEXT[], $2::TEXT[], $3::BOOLEAN[], $4::BOOLEAN[], $5::INTEGER[], $6::BYTEA[], $7::BIGINT[]) AS batch(uuid, role, partial, starts_live, body_bytes, body, seq) WHERE messages.session_id = $8::BIGINT AND messages.seq = batch.seq;

-- statement: histories._REMOVE
DELETE FROM messages WHERE messages.session_id = $1::BIGINT AND messages.seq = any($2::BIGINT[]);

-- statement: histories._FULL
SELECT messages.seq, messages.body
FROM messages
WHERE messages.session_id = $1::BIGINT AND messages.seq > $2::BIGINT ORDER BY messages.seq
LIMIT $3::BIGINT;

-- statement: hooks._LOCK
SELECT tenants.id
FROM tenants
WHERE tenants.id = $1::BIGINT FOR NO KEY UPDATE;

-- statement: hooks._COUNT
SELECT count(*) AS count_1
FROM hooks
WHERE hooks.tenant_id = $1::BIGINT;

-- statement: hooks._ADD
INSERT INTO hooks (tenant_id, event, url, secret, timeout_s) VALUES ($1::BIGINT, $2::VARCHAR, $3::VARCHAR, $4, $5) RETURNING hooks.id, hooks.event, hooks.url, hooks.timeout_s, hooks.enabled, hooks.created_at;

-- statement: hooks._GET
SELECT hooks.id, hooks.event, hooks.url, hooks.timeout_s, hooks.enabled, hooks.created_at
FROM hooks
WHERE hooks.id = $1::UUID AND hooks.tenant_id = $2::BIGINT;

-- statement: hooks._REMOVE
DELETE FROM hooks WHERE hooks.id = $1::UUID AND hooks.tenant_id = $2::BIGINT;

-- statement: hooks._ENDPOINTS
SELECT hooks.id, hooks.event, hooks.url, hooks.secret, hooks.timeout_s
FROM hooks
WHERE hooks.tenant_id = $1::BIGINT AND hooks.enabled ORDER BY hooks.id
LIMIT $2::INTEGER;

-- statement: idempotency._RECALL
SELECT idempotency_keys.request_hash, idempotency_keys.status, idempotency_keys.response
FROM idempotency_keys
WHERE idempotency_keys.tenant_id = $1::BIGINT AND idempotency_keys.key = $2::VARCHAR;

-- statement: idempotency._LOCK
SELECT pg_try_advisory_xact_lock(hashtextextended($1, $2::INTEGER)) AS pg_try_advisory_xact_lock_1;

-- statement: job_crowds._JOBS
SELECT jobs.id, jobs.tenant_id, jobs.session_id, sessions.name, jobs.status, jobs.trigger, jobs.scope_kind, jobs.scope_uuid, jobs.instructions, jobs.strategy, jobs.fallback, jobs.force, jobs.token_gap, jobs.metadata, jobs.priority, jobs.not_before, jobs.deadline_at, jobs.attempt, jobs.max_attempts, jobs.crashes, jobs.model_calls, jobs.coalesced, jobs.cancel_requested_at, jobs.covers_through_seq, jobs.progress, jobs.was_compacted, jobs.reason, jobs.error, jobs.traceparent, jobs.created_at, jobs.started_at, jobs.ended_at, jobs.snoozes
FROM jobs JOIN sessions ON sessions.id = jobs.session_id JOIN unnest($1::TEXT[], $2::BIGINT[]) AS wanted(job_id, number) ON jobs.id = CAST(wanted.job_id AS UUID) AND jobs.tenant_id = wanted.number;

-- statement: job_crowds._EVENTS
SELECT job_events.job_id, job_events.id, job_events.at, job_events.type, job_events.data
FROM job_events JOIN unnest($1::TEXT[], $2::BIGINT[]) AS wanted(job_id, number) ON job_events.job_id = CAST(wanted.job_id AS UUID) AND job_events.id > wanted.number ORDER BY job_events.id;

-- statement: job_ends._CANCEL
WITH ended AS
(UPDATE jobs SET status=CASE WHEN (jobs.status IN ('queued', 'retrying')) THEN 'cancelled' ELSE jobs.status END, cancel_requested_at=coalesce(jobs.cancel_requested_at, now()), paid_summary=CASE WHEN (jobs.status IN ('queued', 'retrying')) THEN NULL ELSE jobs.paid_summary END, error=CASE WHEN (jobs.status IN ('queued', 'retrying')) THEN CAST($1::VARCHAR AS JSONB) ELSE jobs.error END, ended_at=CASE WHEN (jobs.status IN ('queued', 'retrying')) THEN now() END WHERE jobs.id = $2::UUID AND jobs.tenant_id = $3::BIGINT AND jobs.status IN ('queued', 'running', 'retrying') RETURNING jobs.id, jobs.tenant_id, jobs.session_id, jobs.status, jobs.trigger, jobs.scope_kind, jobs.scope_uuid, jobs.instructions, jobs.strategy, jobs.fallback, jobs.force, jobs.token_gap, jobs.metadata, jobs.priority, jobs.not_before, jobs.deadline_at, jobs.attempt, jobs.max_attempts, jobs.crashes, jobs.model_calls, jobs.coalesced, jobs.lease_token, jobs.lease_owner, jobs.lease_expires_at, jobs.dispatched_at, jobs.cancel_requested_at, jobs.covers_through_seq, jobs.progress, jobs.paid_summary, jobs.was_compacted, jobs.reason, jobs.error, jobs.traceparent, jobs.created_at, jobs.started_at, jobs.ended_at, jobs.snoozes),
event AS
(INSERT INTO job_events (job_id, type, data) SELECT ended.id AS id, 'cancel_requested', jsonb_build_object('status', ended.status) AS jsonb_build_object_1
FROM ended),
news AS
(INSERT INTO webhook_deliveries (tenant_id, endpoint_id, job_id, event, payload) SELECT ended.tenant_id AS tenant_id, webhook_endpoints.id AS id, ended.id AS id_1, CASE WHEN (ended.status = 'succeeded' AND ended.was_compacted IS false) THEN 'compaction.skipped' ELSE 'compaction.' || ended.status END AS anon_1, jsonb_build_object('type', CASE WHEN (ended.status = 'succeeded' AND ended.was_compacted IS false) THEN 'compaction.skipped' ELSE 'compaction.' || ended.status END, 'timestamp', ended.ended_at, 'data', jsonb_build_object('job_id', ended.id, 'session_id', sessions.name, 'status', ended.status, 'trigger', ended.trigger, 'was_compacted', ended.was_compacted, 'reason', ended.reason, 'error_code', ended.error ->> 'code')) AS jsonb_build_object_2
FROM ended JOIN webhook_endpoints ON webhook_endpoints.tenant_id = ended.tenant_id AND webhook_endpoints.enabled AND CASE WHEN (ended.status = 'succeeded' AND ended.was_compacted IS false) THEN 'compaction.skipped' ELSE 'compaction.' || ended.status END = any(webhook_endpoints.events) JOIN sessions ON sessions.id = ended.session_id
WHERE ended.ended_at IS NOT NULL)
SELECT ended.id, ended.tenant_id, ended.session_id, sessions.name, ended.status, ended.trigger, ended.scope_kind, ended.scope_uuid, ended.instructions, ended.strategy, ended.fallback, ended.force, ended.token_gap, ended.metadata, ended.priority, ended.not_before, ended.deadline_at, ended.attempt, ended.max_attempts, ended.crashes, ended.model_calls, ended.coalesced, ended.cancel_requested_at, ended.covers_through_seq, ended.progress, ended.was_compacted, ended.reason, ended.error, ended.traceparent, ended.created_at, ended.started_at, ended.ended_at, ended.snoozes, pg_notify('compactd_jobs', CAST(ended.id AS TEXT)) AS pg_notify_1
FROM ended JOIN sessions ON sessions.id = ended.session_id;

-- statement: job_ends._REAP
WITH picked AS
(SELECT jobs.id AS id, jobs.lease_token AS lease_token
FROM jobs
WHERE jobs.status = 'running' AND jobs.lease_expires_at < now()
LIMIT $8::INTEGER FOR NO KEY UPDATE SKIP LOCKED),
ended AS
(UPDATE jobs SET status=CASE WHEN (jobs.cancel_requested_at IS NOT NULL) THEN 'cancelled' WHEN (jobs.crashes + 1 >= 3 OR jobs.attempt >= jobs.max_attempts OR jobs.deadline_at <= now()) THEN 'failed' ELSE 'retrying' END, not_before=CASE WHEN (NOT (jobs.cancel_requested_at IS NOT NULL OR jobs.crashes + 1 >= 3 OR jobs.attempt >= jobs.max_attempts OR jobs.deadline_at <= now())) THEN now() + least(600.0, 2.0 * power(2, jobs.crashes)) * (0.8 + 0.4 * random()) * interval '1 second' ELSE jobs.not_before END, crashes=(jobs.crashes + 1), lease_token=$1::BIGINT, lease_owner=$2::VARCHAR, lease_expires_at=$3::TIMESTAMP WITH TIME ZONE, dispatched_at=$4::TIMESTAMP WITH TIME ZONE, paid_summary=CASE WHEN (NOT (jobs.cancel_requested_at IS NOT NULL OR jobs.crashes + 1 >= 3 OR jobs.attempt >= jobs.max_attempts OR jobs.deadline_at <= now())) THEN jobs.paid_summary END, error=CASE WHEN (jobs.cancel_requested_at IS NOT NULL) THEN CAST($5::VARCHAR AS JSONB) WHEN (jobs.crashes + 1 >= 3 OR jobs.attempt >= jobs.max_attempts OR jobs.deadline_at <= now()) THEN CAST($6::VARCHAR AS JSONB) ELSE CAST($7::VARCHAR AS JSONB) END, ended_at=CASE WHEN (NOT (jobs.cancel_requested_at IS NOT NULL OR jobs.crashes + 1 >= 3 OR jobs.attempt >= jobs.max_attempts OR jobs.deadline_at <= now())) THEN NULL ELSE now() END FROM picked WHERE jobs.id = picked.id RETURNING jobs.id, jobs.tenant_id, jobs.session_id, jobs.status, jobs.trigger, jobs.was_compacted, jobs.reason, jobs.error, jobs.ended_at, jobs.scope_kind, jobs.attempt, picked.lease_token),
closed AS
(UPDATE attempts SET ended_at=now(), outcome='expired', error=ended.error FROM ended WHERE attempts.job_id = ended.id AND attempts.lease_token = ended.lease_token),
events AS
(INSERT INTO job_events (job_id, type, data) SELECT told.id AS id, told.type AS type, told.data AS data
FROM (SELECT ended.id AS id, 1 AS place, 'lease_expired' AS type, jsonb_build_object('status', ended.status) AS data
FROM ended UNION ALL SELECT ended.id AS id, 2, CASE WHEN (ended.scope_kind = 'full') THEN 'tengu_compact_failed' ELSE 'tengu_partial_compact_failed' END AS anon_1, jsonb_build_object('trigger', ended.trigger, 'auto', ended.trigger = 'auto', 'query_source', (SELECT sessions.query_source
FROM sessions
WHERE sessions.id = ended.session_id), 'attempt', ended.attempt, 'code', ended.error -> 'code', 'retryable', ended.error -> 'retryable', 'scope', ended.scope_kind) AS jsonb_build_object_1
FROM ended
WHERE ended.status != 'cancelled') AS told ORDER BY told.id, told.place),
news AS
(INSERT INTO webhook_deliveries (tenant_id, endpoint_id, job_id, event, payload) SELECT ended.tenant_id AS tenant_id, webhook_endpoints.id AS id, ended.id AS id_1, CASE WHEN (ended.status = 'succeeded' AND ended.was_compacted IS false) THEN 'compaction.skipped' ELSE 'compaction.' || ended.status END AS anon_2, jsonb_build_object('type', CASE WHEN (ended.status = 'succeeded' AND ended.was_compacted IS false) THEN 'compaction.skipped' ELSE 'compaction.' || ended.status END, 'timestamp', ended.ended_at, 'data', jsonb_build_object('job_id', ended.id, 'session_id', sessions.name, 'status', ended.status, 'trigger', ended.trigger, 'was_compacted', ended.was_compacted, 'reason', ended.reason, 'error_code', ended.error ->> 'code')) AS jsonb_build_object_2
FROM ended JOIN webhook_endpoints ON webhook_endpoints.tenant_id = ended.tenant_id AND webhook_endpoints.enabled AND CASE WHEN (ended.status = 'succeeded' AND ended.was_compacted IS false) THEN 'compaction.skipped' ELSE 'compaction.' || ended.status END = any(webhook_endpoints.events) JOIN sessions ON sessions.id = ended.session_id
WHERE ended.ended_at IS NOT NULL)
SELECT ended.id, ended.lease_token, ended.status, pg_notify('compactd_jobs', CAST(ended.id AS TEXT)) AS pg_notify_1
FROM ended;

-- statement: job_ends._FAIL_OVERDUE
WITH picked AS
(SELECT jobs.id AS id
FROM jobs
WHERE jobs.status IN ('queued', 'retrying') AND jobs.deadline_at <= now() ORDER BY jobs.deadline_at
LIMIT $4::INTEGER FOR NO KEY UPDATE SKIP LOCKED),
ended AS
(UPDATE jobs SET status='failed', dispatched_at=$1::TIMESTAMP WITH TIME ZONE, paid_summary=$2, error=coalesce(jobs.error, CAST($3::VARCHAR AS JSONB)), ended_at=now() FROM picked WHERE jobs.id = picked.id RETURNING jobs.id, jobs.tenant_id, jobs.session_id, jobs.status, jobs.trigger, jobs.was_compacted, jobs.reason, jobs.error, jobs.ended_at, jobs.scope_kind, jobs.attempt),
events AS
(INSERT INTO job_events (job_id, type, data) SELECT told.id AS id, told.type AS type, told.data AS data
FROM (SELECT ended.id AS id, 1 AS place, 'deadline_passed' AS type, jsonb_build_object('status', ended.status) AS data
FROM ended UNION ALL SELECT ended.id AS id, 2, CASE WHEN (ended.scope_kind = 'full') THEN 'tengu_compact_failed' ELSE 'tengu_partial_compact_failed' END AS anon_1, jsonb_build_object('trigger', ended.trigger, 'auto', ended.trigger = 'auto', 'query_source', (SELECT sessions.query_source
FROM sessions
WHERE sessions.id = ended.session_id), 'attempt', ended.attempt, 'code', ended.error -> 'code', 'retryable', ended.error -> 'retryable', 'scope', ended.scope_kind) AS jsonb_build_object_1
FROM ended
WHERE ended.status != 'cancelled') AS told ORDER BY told.id, told.place),
news AS
(INSERT INTO webhook_deliveries (tenant_id, endpoint_id, job_id, event, payload) SELECT ended.tenant_id AS tenant_id, webhook_endpoints.id AS id, ended.id AS id_1, CASE WHEN (ended.status = 'succeeded' AND ended.was_compacted IS false) THEN 'compaction.skipped' ELSE 'compaction.' || ended.status END AS anon_2, jsonb_build_object('type', CASE WHEN (ended.status = 'succeeded' AND ended.was_compacted IS false) THEN 'compaction.skipped' ELSE 'compaction.' || ended.status END, 'timestamp', ended.ended_at, 'data', jsonb_build_object('job_id', ended.id, 'session_id', sessions.name, 'status', ended.status, 'trigger', ended.trigger, 'was_compacted', ended.was_compacted, 'reason', ended.reason, 'error_code', ended.error ->> 'code')) AS jsonb_build_object_2
FROM ended JOIN webhook_endpoints ON webhook_endpoints.tenant_id = ended.tenant_id AND webhook_endpoints.enabled AND CASE WHEN (ended.status = 'succeeded' AND ended.was_compacted IS false) THEN 'compaction.skipped' ELSE 'compaction.' || ended.status END = any(webhook_endpoints.events) JOIN sessions ON sessions.id = ended.session_id
WHERE ended.ended_at IS NOT NULL)
SELECT ended.id, ended.status, pg_notify('compactd_jobs', CAST(ended.id AS TEXT)) AS pg_notify_1
FROM ended;

-- statement: job_queue._CLAIM
WITH claimed AS
(UPDATE jobs SET status='running', attempt=(jobs.attempt + 1), lease_token=nextval('lease_tokens'), lease_owner=$1::VARCHAR, lease_expires_at=(now() + $2 * interval '1 second'), covers_through_seq=coalesce(jobs.covers_through_seq, (SELECT sessions.head_seq
FROM sessions
WHERE sessions.id = jobs.session_id FOR SHARE)), started_at=coalesce(jobs.started_at, now()) WHERE jobs.id = $3::UUID AND jobs.status IN ('queued', 'retrying') AND jobs.not_before <= now() AND jobs.cancel_requested_at IS NULL AND (jobs.deadline_at IS NULL OR jobs.deadline_at > now()) AND (jobs.status = 'retrying' OR (SELECT true
FROM jobs AS other
WHERE other.session_id = jobs.session_id AND other.status IN ('running', 'retrying')
LIMIT 1) IS NOT true) AND NOT (EXISTS (SELECT *
FROM provider_pauses
WHERE provider_pauses.provider = $4::VARCHAR AND provider_pauses.phase = 'paused')) AND (jobs.crashes = 0 OR (SELECT count(*) AS count_1
FROM jobs AS suspect
WHERE suspect.status = 'running' AND suspect.lease_owner = $1::VARCHAR AND suspect.crashes > 0) < CASE WHEN (jobs.crashes >= 2 OR (EXISTS (SELECT *
FROM jobs AS suspect
WHERE suspect.status = 'running' AND suspect.lease_owner = $1::VARCHAR AND suspect.crashes >= 2))) THEN 1 ELSE 16 END) RETURNING jobs.id, jobs.tenant_id, jobs.session_id, jobs.status, jobs.trigger, jobs.scope_kind, jobs.scope_uuid, jobs.instructions, jobs.strategy, jobs.fallback, jobs.force, jobs.token_gap, jobs.metadata, jobs.priority, jobs.not_before, jobs.deadline_at, jobs.attempt, jobs.max_attempts, jobs.crashes, jobs.model_calls, jobs.coalesced, jobs.lease_token, jobs.lease_owner, jobs.lease_expires_at, jobs.dispatched_at, jobs.cancel_requested_at, jobs.covers_through_seq, jobs.progress, jobs.paid_summary, jobs.was_compacted, jobs.reason, jobs.error, jobs.traceparent, jobs.created_at, jobs.started_at, jobs.ended_at, jobs.snoozes),
attempt AS
(INSERT INTO attempts (job_id, lease_token, attempt, owner) SELECT claimed.id AS id, claimed.lease_token AS lease_token, claimed.attempt AS attempt, claimed.lease_owner AS lease_owner
FROM claimed)
SELECT claimed.id, claimed.tenant_id, claimed.session_id, sessions.name, claimed.status, claimed.trigger, claimed.scope_kind, claimed.scope_uuid, claimed.instructions, claimed.strategy, claimed.fallback, claimed.force, claimed.token_gap, claimed.metadata, claimed.priority, claimed.not_before, claimed.deadline_at, claimed.attempt, claimed.max_attempts, claimed.crashes, claimed.model_calls, claimed.coalesced, claimed.cancel_requested_at, claimed.covers_through_seq, claimed.progress, claimed.was_compacted, claimed.reason, claimed.error, claimed.traceparent, claimed.created_at, claimed.started_at, claimed.ended_at, claimed.snoozes, sessions.id AS id_1, sessions.tenant_id AS tenant_id_1, sessions.name AS name__1, sessions.model, sessions.query_source, sessions.settings, sessions.head_seq, sessions.boundary_seq, sessions.live_job_id, sessions.created_at AS created_at_1, sessions.updated_at, tenants.name AS name_1, claimed.lease_token, claimed.paid_summary, breakers.failures, breakers.opened_at, breakers.last_error_code, now() AS now_1, CAST(EXTRACT(epoch FROM claimed.deadline_at - now()) AS DOUBLE PRECISION) AS anon_1, EXISTS (SELECT *
FROM provider_pauses
WHERE provider_pauses.provider = $4::VARCHAR AND provider_pauses.phase = 'trial') AS anon_2, (SELECT jsonb_agg(attempts.usage) AS jsonb_agg_1
FROM attempts
WHERE attempts.job_id = claimed.id AND attempts.usage IS NOT NULL) AS anon_3, sessions.parameters, EXISTS (SELECT *
FROM session_state
WHERE session_state.session_id = claimed.session_id) AS anon_4, EXISTS (SELECT *
FROM hooks
WHERE hooks.tenant_id = claimed.tenant_id AND hooks.enabled) AS anon_5
FROM claimed JOIN sessions ON sessions.id = claimed.session_id JOIN tenants ON tenants.id = claimed.tenant_id LEFT OUTER JOIN breakers ON breakers.session_id = claimed.session_id;

-- statement: job_queue._NEXT
UPDATE jobs SET dispatched_at=now() WHERE jobs.session_id = $1::BIGINT AND jobs.status = 'queued' AND jobs.not_before <= now() AND jobs.priority < 30 AND ((SELECT true
FROM jobs AS waiting
WHERE waiting.status IN ('queued', 'retrying') AND waiting.priority = 10 AND waiting.not_before <= now() AND waiting.session_id != jobs.session_id ORDER BY waiting.not_before, waiting.id
LIMIT 1) IS DISTINCT FROM true OR jobs.priority < 10) AND ((SELECT true
FROM jobs AS waiting
WHERE waiting.status IN ('queued', 'retrying') AND waiting.priority = 20 AND waiting.not_before <= now() AND waiting.session_id != jobs.session_id ORDER BY waiting.not_before, waiting.id
LIMIT 1) IS DISTINCT FROM true OR jobs.priority < 20) RETURNING jobs.id;

-- statement: job_reads._GET
SELECT jobs.id, jobs.tenant_id, jobs.session_id, sessions.name, jobs.status, jobs.trigger, jobs.scope_kind, jobs.scope_uuid, jobs.instructions, jobs.strategy, jobs.fallback, jobs.force, jobs.token_gap, jobs.metadata, jobs.priority, jobs.not_before, jobs.deadline_at, jobs.attempt, jobs.max_attempts, jobs.crashes, jobs.model_calls, jobs.coalesced, jobs.cancel_requested_at, jobs.covers_through_seq, jobs.progress, jobs.was_compacted, jobs.reason, jobs.error, jobs.traceparent, jobs.created_at, jobs.started_at, jobs.ended_at, jobs.snoozes
FROM jobs JOIN sessions ON sessions.id = jobs.session_id
WHERE jobs.id = $1::UUID AND jobs.tenant_id = $2::BIGINT;

-- statement: job_reads._EVENTS
SELECT job_events.id, job_events.at, job_events.type, job_events.data
FROM job_events
WHERE job_events.job_id = $1::UUID AND job_events.id > $2::BIGINT ORDER BY job_events.id
LIMIT $3::INTEGER;

-- statement: job_reads._ATTEMPTS
SELECT attempts.attempt, attempts.lease_token, attempts.owner, attempts.started_at, attempts.ended_at, attempts.outcome, attempts.error, attempts.usage
FROM attempts
WHERE attempts.job_id = $1::UUID ORDER BY attempts.lease_token;

-- statement: keys._PAGE
SELECT api_keys.id, api_keys.public_id, api_keys.scopes, api_keys.created_at, api_keys.expires_at, api_keys.last_used_at, api_keys.revoked_at
FROM api_keys
WHERE api_keys.tenant_id = $1::BIGINT ORDER BY api_keys.id
LIMIT $2::INTEGER;

-- statement: keys._REVOKE
UPDATE api_keys SET revoked_at=least(api_keys.revoked_at, now()) WHERE api_keys.tenant_id = $1::BIGINT AND api_keys.public_id = $2::VARCHAR;

-- statement: keys._LOCK
SELECT api_keys.scopes, api_keys.expires_at, (api_keys.revoked_at IS NULL OR api_keys.revoked_at > now()) AND (api_keys.expires_at IS NULL OR api_keys.expires_at > now()) AS anon_1
FROM api_keys
WHERE api_keys.tenant_id = $1::BIGINT AND api_keys.public_id = $2::VARCHAR FOR UPDATE;

-- statement: keys._RETIRE
UPDATE api_keys SET revoked_at=least(api_keys.revoked_at, now() + $1 * interval '1 second') WHERE api_keys.tenant_id = $2::BIGINT AND api_keys.public_id = $3::VARCHAR;

-- statement: leader._TRY
SELECT CASE WHEN (EXISTS (SELECT *
FROM pg_locks
WHERE pg_locks.locktype = 'advisory' AND pg_locks.granted AND pg_locks.pid = pg_backend_pid() AND CAST(pg_locks.classid AS BIGINT) = 1668314212 AND CAST(pg_locks.objid AS BIGINT) = 1)) THEN true ELSE pg_try_advisory_lock(CAST(1668314212 AS INTEGER), CAST(1 AS INTEGER)) END AS anon_1;

-- statement: leader._RESIGN
SELECT pg_advisory_unlock(CAST(1668314212 AS INTEGER), CAST(1 AS INTEGER)) AS pg_advisory_unlock_1;

-- statement: leader._SILENCE
SELECT set_config('idle_session_timeout', $1::VARCHAR, false) AS set_config_1;

-- statement: leases._BEAT
UPDATE jobs SET lease_expires_at=(now() + $1 * interval '1 second') WHERE jobs.lease_token = any($2::BIGINT[]) AND jobs.lease_owner = $3::VARCHAR AND jobs.status = 'running' RETURNING jobs.lease_token, jobs.id, jobs.cancel_requested_at IS NOT NULL AS anon_1;

-- statement: leases._PROGRESS
UPDATE jobs SET progress=CAST($1::VARCHAR AS JSONB) WHERE jobs.lease_token = $2::BIGINT AND jobs.status = 'running' RETURNING jobs.id;

-- statement: leases._CANCELLING
SELECT jobs.lease_token
FROM jobs
WHERE jobs.lease_token = any($1::BIGINT[]) AND jobs.cancel_requested_at IS NOT NULL AND jobs.status = 'running';

-- statement: leases._COUNT
UPDATE jobs SET model_calls=(jobs.model_calls + CASE WHEN (jobs.model_calls < $1::INTEGER) THEN 1 ELSE 0 END) WHERE jobs.id = $2::UUID AND jobs.lease_token = $3::BIGINT AND jobs.status = 'running' RETURNING old.model_calls;

-- statement: leases._SAVE
UPDATE jobs SET paid_summary=$1 WHERE jobs.id = $2::UUID AND jobs.lease_token = $3::BIGINT AND jobs.status = 'running' RETURNING jobs.id;

-- statement: live_views._EARLIER
SELECT results.job_id, results.applied_through_seq
FROM results
WHERE results.session_id = $1::BIGINT AND results.lease_token < $2::BIGINT ORDER BY results.lease_token DESC
LIMIT 1;

-- statement: live_views._LIVE
WITH start AS
(SELECT CASE WHEN (sessions.boundary_seq <= $1::BIGINT) THEN sessions.boundary_seq ELSE (SELECT coalesce(max(messages.seq), 0) AS coalesce_1
FROM messages
WHERE messages.session_id = $2::BIGINT AND messages.starts_live AND NOT messages.off_branch AND messages.seq <= $1::BIGINT) END AS seq, sessions.live_job_id AS job_id
FROM sessions
WHERE sessions.id = $2::BIGINT),
first AS
(SELECT results.covers_through_seq AS covers_through_seq, results.body AS body
FROM results, start
WHERE results.job_id = start.job_id AND results.covers_through_seq >= start.seq AND results.covers_through_seq <= $1::BIGINT)
SELECT 0 AS place, first.covers_through_seq AS seq, first.body
FROM first UNION ALL SELECT 1, messages.seq, messages.body
FROM messages
WHERE messages.session_id = $2::BIGINT AND NOT messages.off_branch AND messages.seq >= coalesce((SELECT first.covers_through_seq + 1 AS anon_1
FROM first), (SELECT start.seq
FROM start)) AND messages.seq <= $1::BIGINT;

-- statement: live_views._TAIL
SELECT messages.seq, messages.body
FROM messages
WHERE messages.session_id = $1::BIGINT AND NOT messages.off_branch AND messages.seq > $2::BIGINT ORDER BY messages.seq;

-- statement: live_views._REPLACED
WITH start AS
(SELECT CASE WHEN (sessions.boundary_seq <= $1::BIGINT) THEN sessions.boundary_seq ELSE (SELECT coalesce(max(messages.seq), 0) AS coalesce_1
FROM messages
WHERE messages.session_id = $2::BIGINT AND messages.starts_live AND NOT messages.off_branch AND messages.seq <= $1::BIGINT) END AS seq, (SELECT results.job_id
FROM results
WHERE results.session_id = $2::BIGINT AND results.lease_token < $3::BIGINT ORDER BY results.lease_token DESC
LIMIT 1) AS job_id
FROM sessions
WHERE sessions.id = $2::BIGINT),
first AS
(SELECT results.covers_through_seq AS covers_through_seq, results.body AS body
FROM results, start
WHERE results.job_id = start.job_id AND results.covers_through_seq >= start.seq AND results.covers_through_seq <= $1::BIGINT)
SELECT 0 AS place, first.covers_through_seq AS seq, first.body
FROM first UNION ALL SELECT 1, messages.seq, messages.body
FROM messages
WHERE messages.session_id = $2::BIGINT AND NOT messages.off_branch AND messages.seq >= coalesce((SELECT first.covers_through_seq + 1 AS anon_1
FROM first), (SELECT start.seq
FROM start)) AND messages.seq <= $1::BIGINT;

-- statement: outbox._PING
INSERT INTO webhook_deliveries (tenant_id, endpoint_id, event, payload) SELECT webhook_endpoints.tenant_id, webhook_endpoints.id, 'webhook.ping', jsonb_build_object('type', 'webhook.ping', 'timestamp', now(), 'data', jsonb_build_object('webhook_id', webhook_endpoints.id)) AS jsonb_build_object_1
FROM webhook_endpoints
WHERE webhook_endpoints.id = $1::UUID AND webhook_endpoints.tenant_id = $2::BIGINT RETURNING webhook_deliveries.id;

-- statement: pauses._PAUSE
INSERT INTO provider_pauses (provider, phase, reason, trips, paused_at) VALUES ($1::VARCHAR, 'paused', $2::VARCHAR, 1, now()) ON CONFLICT (provider) DO UPDATE SET phase = 'paused', reason = CASE WHEN (provider_pauses.phase = 'paused') THEN provider_pauses.reason ELSE excluded.reason END, trips = CASE WHEN (provider_pauses.phase = 'paused') THEN provider_pauses.trips ELSE provider_pauses.trips + 1 END, probes = CASE WHEN (provider_pauses.phase = 'paused') THEN provider_pauses.probes ELSE 0 END, paused_at = CASE WHEN (provider_pauses.phase = 'paused') THEN provider_pauses.paused_at ELSE now() END, changed_at = CASE WHEN (provider_pauses.phase = 'paused') THEN provider_pauses.changed_at ELSE now() END RETURNING old.phase, provider_pauses.trips;

-- statement: pauses._SCHEDULE
UPDATE provider_pauses SET probe_at=(now() + $1 * interval '1 second') WHERE provider_pauses.provider = $2::VARCHAR AND provider_pauses.phase = 'paused';

-- statement: pauses._TAKE_PROBE
UPDATE provider_pauses SET probe_at=(now() + $1 * interval '1 second') WHERE provider_pauses.provider = $2::VARCHAR AND provider_pauses.phase = 'paused' AND (provider_pauses.probe_at IS NULL OR provider_pauses.probe_at <= now()) RETURNING provider_pauses.trips, provider_pauses.probes;

-- statement: pauses._PROBE_FAILED
UPDATE provider_pauses SET reason=$1::VARCHAR, probes=(provider_pauses.probes + 1), probe_at=(now() + $2 * interval '1 second') WHERE provider_pauses.provider = $3::VARCHAR AND provider_pauses.phase = 'paused';

-- statement: pauses._TRY
UPDATE provider_pauses SET phase='trial', changed_at=now(), trial_token=(SELECT lease_tokens.last_value - CASE WHEN lease_tokens.is_called THEN 0 ELSE 1 END AS anon_1
FROM lease_tokens) WHERE provider_pauses.provider = $1::VARCHAR AND provider_pauses.phase = 'paused' RETURNING provider_pauses.provider;

-- statement: pauses._OPEN
UPDATE provider_pauses SET phase='open', trips=0, probes=0, probe_at=$1::TIMESTAMP WITH TIME ZONE, changed_at=now() WHERE provider_pauses.provider = $2::VARCHAR AND provider_pauses.phase = any($3::TEXT[]) RETURNING provider_pauses.provider;

-- statement: pauses._LIST
SELECT provider_pauses.provider, provider_pauses.phase, provider_pauses.reason, provider_pauses.trips, provider_pauses.probes, provider_pauses.probe_at, provider_pauses.paused_at, provider_pauses.changed_at
FROM provider_pauses ORDER BY provider_pauses.provider;

-- statement: pauses._PHASE
SELECT provider_pauses.phase
FROM provider_pauses
WHERE provider_pauses.provider = $1::VARCHAR;

-- statement: results._GET
SELECT results.job_id, results.session_id, results.lease_token, results.strategy, results.model, results.pre_tokens, results.post_tokens, results.usage, results.cost_usd, results.ptl_attempts, results.dropped, results.context_management, results.covers_through_seq, results.prefix_hash, results.degraded, results.hook_results, results.body, results.created_at, results.applied_at, results.applied_through_seq, sessions.name AS session_name
FROM results JOIN jobs ON jobs.id = results.job_id JOIN sessions ON sessions.id = results.session_id
WHERE results.job_id = $1::UUID AND jobs.tenant_id = $2::BIGINT;

-- statement: results._APPLY
UPDATE results SET applied_at=coalesce(results.applied_at, now()), applied_through_seq=$1::BIGINT WHERE results.job_id = $2::UUID RETURNING results.applied_at;

-- statement: retention._PRUNE
WITH page AS
(SELECT jobs.id AS id, jobs.session_id AS session_id, jobs.status AS status, jobs.ended_at AS ended_at
FROM jobs
WHERE jobs.id > $1::UUID AND jobs.id < uuidv7(-($2 * interval '1 second')) ORDER BY jobs.id
LIMIT $3::INTEGER),
deleted AS
(DELETE FROM jobs WHERE jobs.id IN (SELECT page.id
FROM page
WHERE page.status IN ('succeeded', 'failed', 'cancelled') AND page.ended_at < now() - $2 * interval '1 second' AND (SELECT sessions.live_job_id
FROM sessions
WHERE sessions.id = page.session_id) IS DISTINCT FROM page.id) AND jobs.status IN ('succeeded', 'failed', 'cancelled') RETURNING jobs.id)
SELECT (SELECT count(*) AS count_1
FROM deleted) AS anon_1, (SELECT count(*) AS count_2
FROM page) AS anon_2, (SELECT page.id
FROM page ORDER BY page.id DESC
LIMIT 1) AS anon_3;

-- statement: retention._PRUNE_KEYS
DELETE FROM idempotency_keys WHERE (idempotency_keys.tenant_id, idempotency_keys.key) IN (SELECT idempotency_keys.tenant_id, idempotency_keys.key
FROM idempotency_keys
WHERE idempotency_keys.created_at < now() - $1 * interval '1 second' ORDER BY idempotency_keys.created_at
LIMIT $2::INTEGER);

-- statement: session_state._PUT
INSERT INTO session_state (session_id, kind, key, body) VALUES ($1::BIGINT, $2::VARCHAR, $3::VARCHAR, $4) ON CONFLICT (session_id, kind, key) DO UPDATE SET body = excluded.body, updated_at = now();

-- statement: session_state._GET
SELECT session_state.body
FROM session_state
WHERE session_state.session_id = $1::BIGINT AND session_state.kind = $2::VARCHAR AND session_state.key = $3::VARCHAR;

-- statement: session_state._DELETE
DELETE FROM session_state WHERE session_state.session_id = $1::BIGINT AND session_state.kind = $2::VARCHAR AND session_state.key = $3::VARCHAR;

-- statement: session_state._LOAD
SELECT session_state.kind, session_state.key, session_state.body, session_state.updated_at
FROM session_state
WHERE session_state.session_id = $1::BIGINT ORDER BY session_state.kind, session_state.key;

-- statement: session_state._CLEAR
DELETE FROM session_state WHERE session_state.session_id = $1::BIGINT AND (EXISTS (SELECT anon_1.kind
FROM unnest($2::TEXT[], $3::TEXT[]) AS anon_1(kind, key)
WHERE session_state.kind = anon_1.kind AND (session_state.key = anon_1.key OR starts_with(session_state.key, anon_1.key || '/'))));

-- statement: sessions._GET
SELECT sessions.id, sessions.tenant_id, sessions.name, sessions.model, sessions.query_source, sessions.settings, sessions.head_seq, sessions.boundary_seq, sessions.live_job_id, sessions.created_at, sessions.updated_at
FROM sessions
WHERE sessions.tenant_id = $1::BIGINT AND sessions.name = $2::VARCHAR;

-- statement: sessions._GET_TO_APPEND
SELECT sessions.id, sessions.tenant_id, sessions.name, sessions.model, sessions.query_source, sessions.settings, sessions.head_seq, sessions.boundary_seq, sessions.live_job_id, sessions.created_at, sessions.updated_at
FROM sessions
WHERE sessions.tenant_id = $1::BIGINT AND sessions.name = $2::VARCHAR FOR NO KEY UPDATE;

-- statement: sessions._LOCK
SELECT sessions.id, sessions.parameters
FROM sessions
WHERE sessions.tenant_id = $1::BIGINT AND sessions.name = $2::VARCHAR FOR NO KEY UPDATE;

-- statement: sessions._PARAMETERS
SELECT sessions.parameters
FROM sessions
WHERE sessions.id = $1::BIGINT;

-- statement: sessions._CREATE
INSERT INTO sessions (tenant_id, name, model, query_source, parameters, settings) VALUES ($1::BIGINT, $2::VARCHAR, $3::VARCHAR, nullif($4::VARCHAR, ''), $5, coalesce(CAST($6::VARCHAR AS JSONB), '{}'::jsonb)) ON CONFLICT (tenant_id, name) DO NOTHING RETURNING sessions.id, sessions.tenant_id, sessions.name, sessions.model, sessions.query_source, sessions.settings, sessions.head_seq, sessions.boundary_seq, sessions.live_job_id, sessions.created_at, sessions.updated_at;

-- statement: sessions._CHANGE
UPDATE sessions SET model=coalesce($1::VARCHAR, sessions.model), query_source=CASE WHEN ($2::VARCHAR IS NULL) THEN sessions.query_source ELSE nullif($2::VARCHAR, '') END, parameters=coalesce($3, sessions.parameters), settings=coalesce(CAST($4::VARCHAR AS JSONB), sessions.settings), updated_at=now() WHERE sessions.id = $5::BIGINT RETURNING sessions.id, sessions.tenant_id, sessions.name, sessions.model, sessions.query_source, sessions.settings, sessions.head_seq, sessions.boundary_seq, sessions.live_job_id, sessions.created_at, sessions.updated_at;

-- statement: standstills._LIVING
SELECT coalesce(bool_and(provider_pauses.provider IS NOT NULL), false) AS coalesce_1, min(provider_pauses.reason) AS min_1, min(provider_pauses.probe_at) AS min_2
FROM workers LEFT OUTER JOIN provider_pauses ON provider_pauses.provider = workers.provider AND provider_pauses.phase = 'paused'
WHERE workers.beat_at > now() - $1 * interval '1 second';

-- statement: tenants._TENANT
INSERT INTO tenants (name) VALUES ($1::VARCHAR) ON CONFLICT (name) DO NOTHING RETURNING tenants.id;

-- statement: tenants._TENANT_ID
SELECT tenants.id
FROM tenants
WHERE tenants.name = $1::VARCHAR;

-- statement: tenants._ISSUE
INSERT INTO api_keys (tenant_id, public_id, secret_hash, scopes, expires_at) VALUES ($1::BIGINT, $2::VARCHAR, $3, $4::TEXT[], $5::TIMESTAMP WITH TIME ZONE) ON CONFLICT (public_id) DO UPDATE SET secret_hash = excluded.secret_hash, scopes = excluded.scopes, expires_at = excluded.expires_at WHERE api_keys.tenant_id = excluded.tenant_id RETURNING api_keys.id;

-- statement: tenants._FIND
SELECT api_keys.id, api_keys.secret_hash, api_keys.scopes, api_keys.tenant_id, tenants.name, api_keys.last_used_at IS NULL OR api_keys.last_used_at < now() - interval '1 minute' AS stale
FROM api_keys JOIN tenants ON tenants.id = api_keys.tenant_id
WHERE api_keys.public_id = $1::VARCHAR AND (api_keys.revoked_at IS NULL OR api_keys.revoked_at > now()) AND (api_keys.expires_at IS NULL OR api_keys.expires_at > now());

-- statement: tenants._TOUCH
UPDATE api_keys SET last_used_at=now() WHERE api_keys.id = $1::BIGINT;

-- statement: webhooks._LOCK
SELECT tenants.id
FROM tenants
WHERE tenants.id = $1::BIGINT FOR NO KEY UPDATE;

-- statement: webhooks._COUNT
SELECT count(*) AS count_1
FROM webhook_endpoints
WHERE webhook_endpoints.tenant_id = $1::BIGINT;

-- statement: webhooks._ADD
INSERT INTO webhook_endpoints (tenant_id, url, events, secret) VALUES ($1::BIGINT, $2::VARCHAR, $3::TEXT[], $4) RETURNING webhook_endpoints.id, webhook_endpoints.url, webhook_endpoints.events, webhook_endpoints.enabled, webhook_endpoints.disabled_reason, webhook_endpoints.failing_since, webhook_endpoints.old_secret_until, webhook_endpoints.created_at, webhook_endpoints.updated_at;

-- statement: webhooks._GET
SELECT webhook_endpoints.id, webhook_endpoints.url, webhook_endpoints.events, webhook_endpoints.enabled, webhook_endpoints.disabled_reason, webhook_endpoints.failing_since, webhook_endpoints.old_secret_until, webhook_endpoints.created_at, webhook_endpoints.updated_at
FROM webhook_endpoints
WHERE webhook_endpoints.id = $1::UUID AND webhook_endpoints.tenant_id = $2::BIGINT;

-- statement: webhooks._ROTATE
UPDATE webhook_endpoints SET secret=$1, old_secret=webhook_endpoints.secret, old_secret_until=(now() + $2 * interval '1 second'), updated_at=now() WHERE webhook_endpoints.id = $3::UUID AND webhook_endpoints.tenant_id = $4::BIGINT RETURNING webhook_endpoints.id, webhook_endpoints.url, webhook_endpoints.events, webhook_endpoints.enabled, webhook_endpoints.disabled_reason, webhook_endpoints.failing_since, webhook_endpoints.old_secret_until, webhook_endpoints.created_at, webhook_endpoints.updated_at;

-- statement: webhooks._REMOVE
DELETE FROM webhook_endpoints WHERE webhook_endpoints.id = $1::UUID AND webhook_endpoints.tenant_id = $2::BIGINT;

-- statement: webhooks._FORGET
DELETE FROM webhook_deliveries WHERE webhook_deliveries.endpoint_id = $1::UUID AND webhook_deliveries.tenant_id = $2::BIGINT;

-- statement: webhooks._DROP
UPDATE webhook_deliveries SET status='dropped', last_error=coalesce(webhook_deliveries.last_error, 'endpoint_disabled'), ended_at=now() WHERE webhook_deliveries.endpoint_id = $1::UUID AND webhook_deliveries.tenant_id = $2::BIGINT AND webhook_deliveries.status = 'pending';

-- statement: webhooks._CHANGE
UPDATE webhook_endpoints SET url=coalesce($1::VARCHAR, webhook_endpoints.url), events=coalesce($2::TEXT[], webhook_endpoints.events), enabled=coalesce($3, webhook_endpoints.enabled), disabled_reason=CASE WHEN ($3 IS true) THEN NULL WHEN ($3 IS false) THEN 'owner' ELSE webhook_endpoints.disabled_reason END, failing_since=CASE WHEN ($3 IS true) THEN NULL ELSE webhook_endpoints.failing_since END, updated_at=now() WHERE webhook_endpoints.id = $4::UUID AND webhook_endpoints.tenant_id = $5::BIGINT RETURNING webhook_endpoints.id, webhook_endpoints.url, webhook_endpoints.events, webhook_endpoints.enabled, webhook_endpoints.disabled_reason, webhook_endpoints.failing_since, webhook_endpoints.old_secret_until, webhook_endpoints.created_at, webhook_endpoints.updated_at;

-- statement: workers._BEAT
INSERT INTO workers (owner, slots, running, loop_lag_seconds, draining, provider) VALUES ($1::VARCHAR, $2::INTEGER, $3::INTEGER, $4, $5, $6::VARCHAR) ON CONFLICT (owner) DO UPDATE SET slots = $2::INTEGER, running = $3::INTEGER, loop_lag_seconds = $4, draining = $5, beat_at = now(), provider = $6::VARCHAR;

-- statement: workers._FORGET
DELETE FROM workers WHERE workers.owner = $1::VARCHAR;

-- statement: workers._FORGET_SILENT
DELETE FROM workers WHERE workers.beat_at < now() - $1 * interval '1 second';

-- statement: workers._LIST
SELECT workers.owner, workers.slots, workers.running, workers.loop_lag_seconds, workers.draining, workers.started_at, workers.beat_at, workers.provider, CAST(EXTRACT(epoch FROM now() - workers.beat_at) AS DOUBLE PRECISION) AS anon_1
FROM workers ORDER BY workers.owner;

-- statement: workers._CAPACITY
SELECT coalesce(provider_pauses.phase, 'open') AS coalesce_1, sum(workers.slots) AS sum_1, max(provider_pauses.trial_token) AS max_1
FROM workers LEFT OUTER JOIN provider_pauses ON provider_pauses.provider = workers.provider
WHERE NOT workers.draining AND workers.beat_at > now() - $1 * interval '1 second' GROUP BY coalesce(provider_pauses.phase, 'open');

-- statement: workers._SHARERS
SELECT count(*) AS count_1
FROM workers
WHERE workers.provider = $1::VARCHAR AND workers.beat_at > now() - $2 * interval '1 second';
