"""The folder of one local stack: who may use it, and where its files are."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import secrets
import string
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Self

from ops.embedded.errors import LocalError
from ops.embedded.privacy import write_private

KEY_NAME_CHARS = string.ascii_lowercase + string.digits
KEY_NAME_LENGTH = 8  # tells keys apart in lists
KEY_SECRET_BYTES = 32  # 256 bits: 43 characters


@dataclass(frozen=True, slots=True, kw_only=True)
class StackState:
    """What stack.json tells other programs: where the stack answers, with which key, and who its processes are."""

    url: str
    api_key: str
    database_url: str
    redis_url: str
    pids: dict[str, int | list[int]]  # supervisor, api, worker (a list if there are several), postgres, valkey


class StackFolder:
    """A folder that one supervisor at a time may use."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: IO[str] | None = None

    @property
    def state_file(self) -> Path:
        """stack.json."""
        return self.path / "stack.json"

    def log(self, name: str) -> Path:
        """The log of one child."""
        return self.path / "log" / f"{name}.log"

    def ready_file(self, name: str) -> Path:
        """What a child touches when it can work."""
        return self.path / "run" / f"{name}.ready"

    def take(self) -> bool:
        """Makes the folder and takes its lock until `leave` or the end of this process; False if somebody has it.

        Raises LocalError if the folder cannot be written.
        """
        try:
            for folder in (self.path, self.path / "log", self.path / "run"):
                folder.mkdir(mode=0o711, parents=True, exist_ok=True)
            lock = os.fdopen(os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600), "r+")
        except OSError as problem:
            raise LocalError(f"{self.path} cannot be used ({problem.strerror}). Set COMPACTD_LOCAL_DIR.") from problem
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return False
        self._lock = lock
        self.state_file.unlink(missing_ok=True)  # of a supervisor that was killed
        return True

    def leave(self) -> None:
        """Gives the folder up; stack.json goes, because nothing answers there any more."""
        self.state_file.unlink(missing_ok=True)
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def api_key(self) -> str:
        """The first key of this stack, made once and kept."""
        file = self.path / "api_key"
        if not file.exists():
            write_private(file, new_api_key())
        return file.read_text().strip()

    def write_state(self, state: StackState) -> None:
        """Replaces stack.json at once."""
        write_private(self.state_file, json.dumps(asdict(state), indent=2) + "\n")

    def read_state(self) -> StackState | None:
        """What a running stack wrote, None if there is nothing."""
        try:
            return StackState(**json.loads(self.state_file.read_text()))
        except FileNotFoundError:
            return None

    def __enter__(self) -> Self:
        """Takes the folder. Raises LocalError if another supervisor has it."""
        if self._lock is None and not self.take():
            running = self.read_state()
            who = f" (pid {running.pids['supervisor']}, {running.url})" if running else ""
            raise LocalError(f"A stack is running in {self.path}{who}. Stop it, or set COMPACTD_LOCAL_DIR.")
        return self

    def __exit__(self, *_: object) -> None:
        """Leaves it."""
        self.leave()


def new_api_key() -> str:
    """`ck_`, a name of eight letters and digits, `_`, and 256 random bits."""
    name = "".join(secrets.choice(KEY_NAME_CHARS) for _ in range(KEY_NAME_LENGTH))
    secret = base64.urlsafe_b64encode(secrets.token_bytes(KEY_SECRET_BYTES)).decode().rstrip("=")
    return f"ck_{name}_{secret}"
