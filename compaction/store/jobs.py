"""Jobs: the one name for what other rooms do with them. Each chore has its own file."""

from compaction.store.dispatching import View, due, forget_ring, in_flight, look, mark, running_since
from compaction.store.enqueuing import Enqueued, NewJob, enqueue
from compaction.store.finishing import Finish, Finished, finish
from compaction.store.job_ends import Reaped, cancel, reap_expired
from compaction.store.job_queue import Claim, claim, next_waiting
from compaction.store.job_reads import AttemptRow, JobEvent, events, get, list_attempts, list_jobs
from compaction.store.job_rows import JobRow
from compaction.store.leases import Beat, beat, cancel_requested, count_model_call, save_paid_summary, set_progress

__all__ = [
    "AttemptRow",
    "Beat",
    "Claim",
    "Enqueued",
    "Finish",
    "Finished",
    "JobEvent",
    "JobRow",
    "NewJob",
    "Reaped",
    "View",
    "beat",
    "cancel",
    "cancel_requested",
    "claim",
    "count_model_call",
    "due",
    "enqueue",
    "events",
    "finish",
    "forget_ring",
    "get",
    "in_flight",
    "list_attempts",
    "list_jobs",
    "look",
    "mark",
    "next_waiting",
    "reap_expired",
    "running_since",
    "save_paid_summary",
    "set_progress",
]
