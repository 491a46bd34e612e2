"""The pages' routers, in the order in which addresses are looked up."""

from __future__ import annotations

from api.dashboard import static_files
from api.dashboard.routes import (
    audit,
    breakers,
    bulk,
    bulk_deeds,
    failures,
    guides,
    job,
    jobs,
    lost,
    overview,
    sessions,
    sign_in,
    workers,
)

ROUTERS = (
    static_files.router,
    sign_in.router,
    overview.router,
    failures.router,
    bulk_deeds.router,  # before the job: its address would be taken for an id
    jobs.router,
    job.router,
    sessions.router,
    breakers.router,
    bulk.router,
    workers.router,
    audit.router,
    guides.router,
    lost.router,  # last: it takes every address that is left
)
