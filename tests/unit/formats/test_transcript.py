from __future__ import annotations

import io

from compaction.formats.transcript import PROGRESS_STEP_BYTES, Progress, size_of

MEGABYTE = PROGRESS_STEP_BYTES


def test_all_readings_count_towards_one_total() -> None:
    told: list[tuple[int, int]] = []
    progress = Progress(3 * MEGABYTE, lambda done, total: told.append((done, total)))
    for offset in range(0, 3 * MEGABYTE, MEGABYTE // 4):
        progress.first(offset)
    for _ in ("check", "store"):
        for offset in range(0, 3 * MEGABYTE, MEGABYTE // 4):
            progress.cut(offset)
        progress.done()
    steps = [done // MEGABYTE for done, _ in told]
    assert steps == sorted(steps)
    assert (told[0], told[-1]) == ((MEGABYTE, 9 * MEGABYTE), (9 * MEGABYTE, 9 * MEGABYTE))
    assert set(steps) == set(range(1, 10))


def test_without_a_listener_nothing_happens() -> None:
    progress = Progress(10, None)
    progress.first(5 * MEGABYTE)
    progress.done()


def test_the_size_of_a_file_is_measured_without_reading_it() -> None:
    file = io.BytesIO(b"12345")
    file.seek(3)
    assert size_of(file) == 5
    assert file.tell() == 0
