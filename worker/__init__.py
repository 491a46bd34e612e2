"""The Celery application: a doorbell message carries a job id, the job itself lives in Postgres."""
