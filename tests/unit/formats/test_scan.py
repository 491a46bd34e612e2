from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json
from compaction.core.messages import decode_message
from compaction.errors import RequestError
from compaction.formats import claude_code
from compaction.formats.scan import MAX_ROW_TYPES, Scan
from compaction.formats.transcript import Progress
from tests.unit.formats.log import Log, encoded

MEGABYTE = 1024 * 1024
READING = """
import sys, tracemalloc
from compaction.formats import claude_code
tracemalloc.start()
with open(sys.argv[1], "rb") as file:
    count = sum(1 for _ in claude_code.read(file).bodies())
print(count, tracemalloc.get_traced_memory()[1])
"""  # in a process of its own: other tests fill caches here
TEXT = st.text(st.characters(), max_size=30)  # half characters included
BLOCK: st.SearchStrategy[Json] = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, TEXT),
    st.builds(lambda name, value: {"type": "tool_use", "id": name, "input": {"v": value}}, TEXT, st.floats() | TEXT),
    st.builds(lambda name, text: {"type": "tool_result", "tool_use_id": name, "content": text}, TEXT, TEXT),
    st.builds(lambda name: {"type": f"new_{len(name)}", name: [None, True, {}]}, TEXT),
)
CONTENT: st.SearchStrategy[Json] = TEXT | st.lists(BLOCK, max_size=4)
SPACING = st.sampled_from([(",", ":"), (", ", ": "), (" ,", " :\t")])


@settings(deadline=None)  # a busy machine is no failure
@given(st.lists(st.tuples(CONTENT, SPACING, st.booleans()), min_size=1, max_size=5))
def test_the_content_of_each_body_is_the_rows_own_bytes(rows: list[tuple[Json, tuple[str, str], bool]]) -> None:
    """Whatever a producer's JSON library writes: spaces, escapes or plain characters, half characters, NaN."""
    wanted, lines, parent = [], [], "null"
    for index, (content, separators, user) in enumerate(rows):
        escape = jsonbytes.has_lone_surrogate(json.dumps(content, ensure_ascii=False)) or index % 2 == 0
        wanted.append(json.dumps(content, separators=separators, ensure_ascii=escape).encode())
        kind = b"user" if user else b"assistant"
        head = b'{"type":"%s","uuid":"u%d","parentUuid":%s,"message":{"content":' % (kind, index, parent.encode())
        lines.append(head + wanted[-1] + b"}}")
        parent = f'"u{index}"'
    bodies = claude_code.read(io.BytesIO(b"\n".join(lines))).bodies()
    assert [jsonbytes.members(body)["content"] for body in bodies] == wanted


@settings(deadline=None)  # a busy machine is no failure
@given(st.data())
def test_no_damage_to_a_log_is_fatal(data: st.DataObject) -> None:
    """Bytes overwritten, cut out or put in anywhere: the import gives bodies that can be read, or a clear refusal."""
    log = Log()
    log.user("Where is the ü?")
    call = log.call("c1", message_id="m1")
    log.boundary()
    log.user("A summary.", isCompactSummary=True)
    log.result("c1", sourceToolAssistantUUID=call)
    whole = bytearray(log.data)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(whole)))
        whole[start : start + data.draw(st.integers(0, 40))] = data.draw(st.binary(max_size=20))
    try:
        transcript = claude_code.read(io.BytesIO(bytes(whole)))
    except RequestError:
        return
    messages = [decode_message(body) for body in transcript.bodies()]
    assert len({one.uuid for one in messages}) == len(messages) == transcript.report.stored_messages


def test_memory_holds_facts_about_rows_and_never_the_file(tmp_path: Path) -> None:
    log, path = Log(), tmp_path / "long.jsonl"
    row = encoded({"type": "progress", "uuid": "p", "sessionId": "s", "data": {"output": "x" * 45_000}})
    with path.open("wb") as file:
        for index in range(700):
            log.lines.clear()
            log.user("y" * 4_000 + str(index))
            log.line(row.replace(b'"p"', b'"p%d"' % index))
            file.write(log.data)
    size = path.stat().st_size
    assert size > 30 * MEGABYTE
    told = subprocess.run([sys.executable, "-c", READING, str(path)], capture_output=True, text=True, check=True)
    count, peak = map(int, told.stdout.split())
    assert count == 700
    assert peak < size / 10  # 1 MB; the file has 34


def test_the_number_of_row_types_in_a_report_is_bounded() -> None:
    log, scan = Log(), Scan()
    for index in range(MAX_ROW_TYPES + 30):
        log.row(f"kind-{index}")
    scan.run(log.file(), Progress(0, None))
    assert len(scan.row_types) == MAX_ROW_TYPES + 1
    assert scan.row_types["unknown"] == 30


def test_rows_without_a_uuid_count_only_where_they_are_messages() -> None:
    log, scan = Log(), Scan()
    log.line(encoded({"type": "file-history-snapshot"}))
    log.line(encoded({"type": "user", "message": {"content": "x"}}))
    scan.run(log.file(), Progress(0, None))
    assert [row.kind for row in scan.rows] == ["user"]
    assert scan.objects == 2
