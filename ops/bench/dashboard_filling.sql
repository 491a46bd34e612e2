-- A service that has been used for a month: :jobs jobs of 20 tenants with :sessions sessions, one in twenty failed or
-- cancelled, each success with its result; 5,000 wait, 200 run, 40 breakers are open. Ids lie at their times.
INSERT INTO tenants (name) SELECT 'team-' || n FROM generate_series(1, 20) n;

INSERT INTO sessions (tenant_id, name, model, head_seq)
SELECT t.id, 'agent-' || n, (ARRAY['claude-haiku-4-5','claude-sonnet-4-5','claude-opus-4-6'])[1 + n % 3], 20
FROM generate_series(1, :sessions) n JOIN tenants t ON t.name = 'team-' || (1 + n % 20);

CREATE TEMP TABLE drawn AS
SELECT n, s.id AS session_id, s.tenant_id, now() - interval '30 days' * (1 - n::float8 / :jobs) AS at, random() AS luck
FROM generate_series(1, :jobs) n JOIN
  (SELECT id, tenant_id, row_number() OVER (ORDER BY id) AS place FROM sessions) s ON s.place = 1 + n % :sessions;

INSERT INTO jobs (id, tenant_id, session_id, status, trigger, priority, max_attempts, attempt, was_compacted, error,
                  created_at, not_before, started_at, ended_at)
SELECT uuidv7(at - now()), tenant_id, session_id,
  CASE WHEN luck < 0.04 THEN 'failed' WHEN luck < 0.05 THEN 'cancelled' ELSE 'succeeded' END,
  (ARRAY['auto','auto','auto','manual','reactive','bulk'])[1 + n % 6], 20, 5, 1, CASE WHEN luck >= 0.05 THEN luck < 0.9 END,
  CASE WHEN luck < 0.04 THEN jsonb_build_object('code', (ARRAY['no_summary','overloaded','timeout','refusal','internal'])
    [1 + (luck * 1000)::int % 5], 'message', 'It did not work.', 'retryable', false) END,
  at, at, at + interval '1 second', at + interval '1 second' + interval '30 seconds' * random()
FROM drawn;

INSERT INTO results (job_id, session_id, lease_token, strategy, model, pre_tokens, post_tokens, usage, cost_usd, ptl_attempts,
                     dropped, covers_through_seq, prefix_hash, degraded, hook_results, body, created_at)
SELECT id, session_id, 1, (ARRAY['fresh','shared_prefix','microcompact'])[1 + (random() * 2)::int], 'claude-haiku-4-5',
  150000, 9000, '{}', 0.1, 0, '{"rounds": 0, "messages": 0, "tokens": 0}', 20, '', false, '[]', decode(':body', 'hex'), ended_at
FROM jobs WHERE was_compacted;

INSERT INTO jobs (tenant_id, session_id, trigger, priority, max_attempts, deadline_at)
SELECT tenant_id, id, 'auto', 20, 5, now() + interval '1 day' FROM sessions ORDER BY id LIMIT 5000;

INSERT INTO jobs (tenant_id, session_id, status, trigger, priority, max_attempts, lease_token, lease_owner,
                  lease_expires_at, started_at)
SELECT tenant_id, id, 'running', 'auto', 20, 5, id, 'host:1:a', now() + interval '1 hour', now()
FROM sessions ORDER BY id DESC LIMIT 200;

INSERT INTO breakers (session_id, failures, opened_at, last_error_code)
SELECT id, 3, now(), 'no_summary' FROM sessions ORDER BY id LIMIT 40;
