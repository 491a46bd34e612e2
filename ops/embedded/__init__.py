"""Real Postgres and Valkey servers as child processes of a program or a test; no root, no Docker, no system service."""

from ops.embedded.postgres import Postgres
from ops.embedded.valkey import Valkey

__all__ = ["Postgres", "Valkey"]
