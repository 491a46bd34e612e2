-- A queue that has been used for months: a million ended jobs, and 50,000 bulk jobs of one tenant that wait.
-- :sessions sessions; each has :ended ended jobs and one that waits.
INSERT INTO tenants (name) VALUES ('archive');

INSERT INTO sessions (tenant_id, name, model, head_seq)
SELECT tenants.id, 's' || n, 'm', 20 FROM generate_series(1, :sessions) n, tenants WHERE name = 'archive';

INSERT INTO jobs (tenant_id, session_id, status, trigger, priority, max_attempts, ended_at)
SELECT tenant_id, id, 'succeeded', 'auto', 20, 5, now() FROM sessions, generate_series(1, :ended);

INSERT INTO jobs (tenant_id, session_id, trigger, priority, max_attempts, deadline_at)
SELECT tenant_id, id, 'bulk', 30, 5, now() + interval '1 day' FROM sessions;
