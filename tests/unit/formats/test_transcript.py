from __future__ import annotations

import io

from compaction.formats.transcript import PROGRESS_STEP_BYTES, Progress, size_of

MEGABYTE = PROGRESS_STEP_BYTES


def test_both_readings_count_towards_one_total() -> None:
    told: list[tuple[int, int]] = []
    progress = Progress(3 * MEGABYTE, lambda done, total: told.append((done, total)))
    for offset in range(0, 3 * MEGABYTE, MEGABYTE // 4):
        progress.first(offset)
    for offset in range(0, 3 * MEGABYTE, MEGABYTE // 4):
        progress.second(offset)
    progress.done()
    assert told == [(step * MEGABYTE, 6 * MEGABYTE) for step in (1, 2, 3, 4, 5, 6)]


def test_without_a_listener_nothing_happens() -> None:
    progress = Progress(10, None)
    progress.first(5 * MEGABYTE)
    progress.done()


def test_the_size_of_a_file_is_measured_without_reading_it() -> None:
    file = io.BytesIO(b"12345")
    file.seek(3)
    assert size_of(file) == 5
    assert file.tell() == 0
