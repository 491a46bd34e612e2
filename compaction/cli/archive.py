"""Archives as a batch owner has them: folders, files and buckets of transcripts, packed or not, read piece by piece.

They are read here, where the command runs, and imported through the API: a server that opened addresses for its callers
would open what is not theirs. A piece is one session's transcript, in a file of its own; of files that are packed, far
away or hold many sessions a temporary one, so that memory does not grow with the archive.
"""

from __future__ import annotations

import importlib
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from compaction.core import jsonbytes
from compaction.core.bulk import MAX_SESSION_IDS
from compaction.formats.document import is_conversation
from compaction.formats.identity import short_digest

SUFFIXES = frozenset({".jsonl", ".json"})
PACKED = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd"}  # as fsspec names them
COPY_BYTES = 2**20
MAX_LINE_BYTES = 64 * 2**20  # one session on one line: the API's limit of a body
_NO_ID = re.compile(r"[^A-Za-z0-9._:\-]+")  # what a session's id cannot hold
MAX_ID_CHARS = 200


class ArchiveProblem(Exception):
    """An archive that cannot be read; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One session's transcript, or a `problem` that names a file. `session_id` is None where the transcript says it."""

    label: str  # where it came from, for people
    path: Path
    session_id: str | None = None
    is_temporary: bool = False
    problem: str | None = None

    def forget(self) -> None:
        """Deletes a temporary file."""
        if self.is_temporary:
            self.path.unlink(missing_ok=True)


def pieces(source: str, scratch: Path) -> Iterator[Piece]:
    """The sessions of an archive, in the order of its names. Blocking: for a thread.

    Raises ArchiveProblem: before the first piece when what lies near holds too many, later for files from far away.
    """
    files, names = _listed(source)
    if not names:
        raise ArchiveProblem(f"There are no transcripts in {source}: files that end in .jsonl or .json, packed or not.")
    check_size(_least(files, names))
    found = 0
    for number, name in enumerate(names):
        for piece in _split(files, name, scratch / str(number)):
            found += 1
            check_size(found)
            yield piece


def check_size(sessions: int) -> None:
    """Raises ArchiveProblem for more sessions than one run may name."""
    if sessions > MAX_SESSION_IDS:
        raise ArchiveProblem(
            f"The archive has more than {MAX_SESSION_IDS:,} sessions, the most of one run. Give its folders or files "
            "one by one; what is imported already is not imported or paid again."
        )


def files_of(address: str) -> tuple[Any, str]:
    """The file system and the place of an address. Raises ArchiveProblem."""
    fsspec = importlib.import_module("fsspec")  # most commands read no archive

    try:
        files, place = fsspec.core.url_to_fs(address)
    except ImportError:
        scheme = address.partition("://")[0]
        advice = "Install it with `pip install 'compactd[s3]'`." if scheme == "s3" else "Install its fsspec package."
        raise ArchiveProblem(f"{scheme}:// needs a package that is not here. {advice}") from None
    except ValueError:
        raise ArchiveProblem(f"{address} is no address that can be read: use a path, file://… or s3://…") from None
    return files, str(place)


def _listed(source: str) -> tuple[Any, list[str]]:
    files, place = files_of(source)
    try:
        if files.isfile(place):
            return files, [place]
        found = sorted(files.find(place))
    except OSError as error:
        raise ArchiveProblem(f"{source} cannot be read: {error.strerror or type(error).__name__}.") from None
    depth = len(PurePosixPath(place).parts)
    return files, [name for name in found if _is_transcript(name, depth)]


def _is_transcript(name: str, depth: int) -> bool:
    """Whether a file is taken: hidden files and folders below the source are other programs' business."""
    below = PurePosixPath(name)
    hidden = any(part.startswith(".") for part in below.parts[depth:])
    plain = below.with_suffix("") if below.suffix in PACKED else below
    return plain.suffix in SUFFIXES and not hidden


def _least(files: Any, names: list[str]) -> int:  # noqa: ANN401 - fsspec has no types
    """How many sessions there are at least, as far as that costs no transfer; it stops soon behind the limit."""
    count = len(names)
    for name in names if _is_local(files) else ():
        if count > MAX_SESSION_IDS:
            break
        packing = PACKED.get(PurePosixPath(name).suffix)
        # A damaged file is told when its turn comes.
        with suppress(OSError, EOFError, ValueError), files.open(name, "rb", compression=packing) as file:
            count += _more_conversations(file)
    return count


def _more_conversations(file: BinaryIO) -> int:
    """How many conversations follow the first one, up to the limit."""
    if _conversation(_line(file)) is None:
        return 0
    return sum(1 for _ in islice(iter(lambda: _line(file), b""), MAX_SESSION_IDS))


def _is_local(files: Any) -> bool:  # noqa: ANN401 - fsspec has no types
    return "file" in (files.protocol if isinstance(files.protocol, tuple) else (files.protocol,))


def _split(files: Any, name: str, scratch: Path) -> Iterator[Piece]:  # noqa: ANN401 - fsspec has no types
    packing = PACKED.get(PurePosixPath(name).suffix)
    if _is_local(files) and packing is None:
        whole = Piece(name, Path(name))
    else:
        whole = Piece(name, scratch.with_suffix(".whole"), is_temporary=True)
        if (problem := _copied(files, name, packing, whole.path)) is not None:
            yield Piece(name, whole.path, problem=problem)
            return
    if not _holds_many(whole.path):
        yield whole
        return
    yield from _by_line(whole, scratch)
    whole.forget()


def _copied(files: Any, name: str, packing: str | None, target: Path) -> str | None:  # noqa: ANN401 - no types
    """Unpacks or fetches a file; what is wrong with it, so that one damaged file does not cost the others."""
    try:
        with files.open(name, "rb", compression=packing) as packed, target.open("wb") as plain:
            shutil.copyfileobj(packed, plain, COPY_BYTES)
    except (OSError, EOFError, ValueError) as error:
        target.unlink(missing_ok=True)
        return f"{name} cannot be read ({type(error).__name__}). Is it damaged or not allowed?"
    return None


def _holds_many(path: Path) -> bool:
    """Whether each line is a whole conversation of its own."""
    with path.open("rb") as file:
        first = _conversation(_line(file))
        return first is not None and bool(_line(file))


def _by_line(whole: Piece, scratch: Path) -> Iterator[Piece]:
    with whole.path.open("rb") as file:
        number = 0
        while raw := _line(file):
            number += 1
            path = scratch.with_suffix(f".{number}.json")
            path.write_bytes(raw)
            yield Piece(f"{whole.label}:{number}", path, _session_id(_conversation(raw)), is_temporary=True)


def _line(file: BinaryIO) -> bytes:
    """The next line that is not blank; empty at the end, or when it is longer than any session can be."""
    while raw := file.readline(MAX_LINE_BYTES):
        if raw.strip():
            return raw
    return b""


def _conversation(raw: bytes) -> dict[str, Any] | None:
    try:
        value = jsonbytes.decode(raw)
    except ValueError:
        return None
    return value if isinstance(value, dict) and is_conversation(value) else None


def _session_id(told: dict[str, Any] | None) -> str | None:
    """What the line calls its session, fit for an id; None without a name: the import makes one of its content.

    A name that had to be changed bears a digest of the whole one, or `a b` and `a-b` would become one session.
    """
    given = next((told[name] for name in ("session_id", "sessionId", "id") if told and name in told), None)
    if not isinstance(given, str) or not given:
        return None
    fit = _NO_ID.sub("-", given)
    if fit == given and len(given) <= MAX_ID_CHARS:
        return given
    mark = f"-{short_digest([given.encode()])}"
    return fit[: MAX_ID_CHARS - len(mark)] + mark
