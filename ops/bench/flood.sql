-- Very many sessions of one tenant with the same messages, each with a bulk job that waits. Values as psycopg takes them.
WITH tenant AS (INSERT INTO tenants (name) VALUES ('flood') RETURNING id),
made AS (INSERT INTO sessions (tenant_id, name, model, head_seq)
         SELECT id, 'f' || n, %(model)s, %(count)s FROM tenant, generate_series(1, %(flood)s) n
         RETURNING id, tenant_id),
said AS (INSERT INTO messages (session_id, seq, uuid, role, body_bytes, body)
         SELECT made.id, m.seq, m.uuid, m.role, m.size, m.body FROM made,
         unnest(%(seqs)s::bigint[], %(uuids)s::text[], %(roles)s::text[], %(sizes)s::int[], %(bodies)s::bytea[])
         AS m (seq, uuid, role, size, body))
INSERT INTO jobs (tenant_id, session_id, trigger, priority, max_attempts, deadline_at)
SELECT tenant_id, id, 'bulk', 30, 5, now() + interval '1 day' FROM made
