-- 1,000 sessions of two tenants with 20 messages and 30 jobs each: most ended, 300 wait, 60 run.
-- :tenant owns every twentieth session; "another" owns the rest.
INSERT INTO tenants (name) VALUES ('another');

INSERT INTO sessions (tenant_id, name, model, head_seq)
SELECT CASE WHEN n % 20 = 7 THEN :tenant ELSE t.id END, 's' || n, 'm', 20
FROM generate_series(1, 1000) n, tenants t WHERE t.name = 'another';

INSERT INTO messages (session_id, seq, uuid, role, body_bytes, body)
SELECT id, n, 'u' || n, 'user', 100, decode(repeat('00', 100), 'hex') FROM sessions, generate_series(1, 20) n;

INSERT INTO jobs (tenant_id, session_id, status, trigger, priority, max_attempts, ended_at, error)
SELECT tenant_id, id, 'failed', 'auto', 20, 5, now(), '{"code": "timeout"}' FROM sessions, generate_series(1, 29);

INSERT INTO jobs (tenant_id, session_id, trigger, priority, max_attempts, deadline_at)
SELECT tenant_id, id, 'auto', 20, 5, now() + interval '1 day' FROM sessions WHERE id % 10 < 3;

INSERT INTO jobs (tenant_id, session_id, status, trigger, priority, max_attempts, lease_token, lease_expires_at)
SELECT tenant_id, id, 'running', 'auto', 20, 5, id, now() FROM sessions WHERE id % 100 > 93;

INSERT INTO attempts (job_id, lease_token, attempt, owner) SELECT id, 1, 1, 'w' FROM jobs;

INSERT INTO job_events (job_id, type) SELECT id, 'x' FROM jobs;

INSERT INTO results (job_id, session_id, lease_token, strategy, pre_tokens, post_tokens, usage, ptl_attempts, dropped,
                     covers_through_seq, prefix_hash, degraded, hook_results, body)
SELECT id, session_id, 1, 'fresh', 1, 1, '{}', 0, '{}', 5, '', false, '[]', '' FROM jobs WHERE status = 'failed';

INSERT INTO breakers (session_id) SELECT id FROM sessions;
