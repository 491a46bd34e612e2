-- A day of a small service, for the overview's picture: busy by day, quiet by night, a bad half hour at noon.
INSERT INTO job_tallies (tenant_id, at, outcome, model, jobs, pre_tokens, post_tokens, cost_usd)
SELECT 0, date_bin('5 minutes', now(), 'epoch') - n * interval '30 minutes', outcome, 'claude-sonnet-4-5', jobs,
  CASE outcome WHEN 'succeeded' THEN jobs * 158000 ELSE 0 END, CASE outcome WHEN 'succeeded' THEN jobs * 9000 ELSE 0 END,
  CASE outcome WHEN 'succeeded' THEN jobs * 0.21 ELSE 0 END
FROM generate_series(1, 47) n,
  LATERAL (VALUES
    ('succeeded', (14 + 11 * sin(n / 7.0))::int),
    ('skipped', (2 + 2 * sin(n / 3.0))::int),
    ('failed', CASE WHEN n IN (21, 22) THEN 9 - n % 2 * 4 ELSE (n % 11 = 0)::int END),
    ('cancelled', (n % 9 = 4)::int)) AS drawn (outcome, jobs)
WHERE jobs > 0;
