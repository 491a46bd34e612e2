"""The Celery app and its settings. facts behind each line: Redis is a lossy, duplicating doorbell, never the queue."""

from __future__ import annotations

from celery import Celery

QUEUE = "compactd"
KEY_PREFIX = "compactd:"  # of everything that Celery keeps in Redis
WAKE_KEY = "compactd:wake"  # a list with one entry: something came that the leader should look at now
TASK = "compactd.run"


def make_app(redis_url: str) -> Celery:
    """A Celery app on `redis_url`; used by workers to hear the doorbell and by everybody else to ring it."""
    app = Celery("compactd", broker=redis_url, set_as_current=False)
    app.conf.update(
        task_default_queue=QUEUE,
        task_acks_late=False,  # late acks add duplicates on every reconnect; the lease in Postgres redelivers
        task_ignore_result=True,
        result_backend=None,  # the result is a row
        task_serializer="json",
        accept_content=["json"],
        task_publish_retry=False,  # a lost ring is rung again by the reconciler
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=True,  # a message waits in Redis, where another worker can take it
        worker_hijack_root_logger=False,
        worker_send_task_events=False,
        worker_enable_remote_control=False,  # nothing listens to it; saves connections and wake-ups
        task_create_missing_queues=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,  # the default gives up after 100 tries and ends the worker
        broker_pool_acquire_timeout=5,
        broker_transport_options={
            "visibility_timeout": 300,
            "socket_timeout": 15,  # must be over the one second of BRPOP
            "socket_connect_timeout": 3,
            "socket_keepalive": True,
            "health_check_interval": 10,
            "global_keyprefix": KEY_PREFIX,
            "client_name": "compactd",
        },
        timezone="UTC",
        enable_utc=True,
    )
    return app
