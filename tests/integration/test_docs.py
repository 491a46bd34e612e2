"""The pages of docs/ are true: what they tell one to run, runs in its order against the service."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from compaction.cli import failures, main
from compaction.client import Client, errors
from ops.embedded import Valkey
from tests.integration.service import KEY, ROOT, Service

DOCS = ROOT / "docs"
RUN_HERE = {"client.md": "python", "cli.md": "sh", "formats.md": "sh", "bulk.md": "sh"}
# Pages with blocks that other tests run or that are pieces of a receiver's own program.
ELSEWHERE = {
    "api.md": "tests/integration/api/test_api_doc.py",
    "hooks.md": "pieces",
    "operations.md": "pieces",
    "webhooks.md": "pieces",
}


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, module_database_url: str, valkey: Valkey) -> Iterator[Service]:
    with Service(tmp_path_factory.mktemp("service"), module_database_url, valkey.url()) as running:
        yield running


def run(service: Service, folder: Path, *command: str) -> str:
    """What the command writes, in a folder of its own, with the product on its path."""
    environ = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "COMPACTD_URL": str(service.http.base_url),
        "COMPACTD_API_KEY": KEY,
    }
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_the_page_of_the_client_runs_as_one_program(service: Service, tmp_path: Path) -> None:
    (tmp_path / "page.py").write_text("\n".join(blocks("client.md", "python")), encoding="utf-8")
    told = run(service, tmp_path, sys.executable, "page.py").splitlines()
    assert "tengu_compact" in told
    assert "end" in told
    assert any(re.fullmatch(r"fresh \d+ → \d+", line) for line in told)
    assert told[-1] == "succeeded"


def test_the_page_of_the_command_line_runs_as_one_script(service: Service, tmp_path: Path) -> None:
    told = run(service, tmp_path, "sh", "-eu", "-c", "\n".join(blocks("cli.md", "sh")))
    assert "All is well." in told
    assert "walk-by-command" in told
    assert (tmp_path / "result.json").stat().st_size > 1_000


def test_the_page_of_the_formats_runs_as_one_script(service: Service, tmp_path: Path) -> None:
    """The log with the result's rows behind it is read as compacted: its live view is a boundary and what follows."""
    run(service, tmp_path, "sh", "-eu", "-c", "\n".join(blocks("formats.md", "sh")))
    live = service.view("read-again", "live")
    assert live[0]["metadata"]["kind"] == "compact_boundary"
    assert live[1]["is_compact_summary"] is True
    assert len(live) < len(service.view("read-again", "full")) / 10


def test_the_page_of_archives_runs_as_one_script(service: Service, tmp_path: Path) -> None:
    told = run(service, tmp_path, "sh", "-eu", "-c", "\n".join(blocks("bulk.md", "sh")))
    assert "ended (done)" in told
    assert "<svg" in (tmp_path / "report.html").read_text()
    assert '"type": "succeeded"' in (tmp_path / "results.jsonl").read_text()
    (entry,) = (json.loads(line) for line in (tmp_path / "compacted" / "manifest.jsonl").read_text().splitlines())
    assert entry["result"]["type"] == "succeeded"
    written = (tmp_path / "compacted" / entry["file"]).read_bytes()
    assert len(written) > 1_000
    (unchanged,) = (json.loads(line) for line in (tmp_path / "again" / "manifest.jsonl").read_text().splitlines())
    assert unchanged["result"] == {"type": "skipped", "reason": "unchanged"}
    assert (tmp_path / "again" / unchanged["file"]).read_bytes() == written


def test_every_block_of_commands_belongs_to_a_test() -> None:
    for page in sorted(DOCS.glob("*.md")):
        found = {language for language in ("sh", "python") if blocks(page.name, language)}
        assert page.name in ELSEWHERE or found <= {RUN_HERE.get(page.name, "")}, page.name


@pytest.mark.parametrize("page", [page for page, where in ELSEWHERE.items() if where == "pieces"])
def test_pieces_are_at_least_well_formed(page: str) -> None:
    for number, block in enumerate(blocks(page, "python")):
        compile(block, f"{page} {number}", "exec")
    for block in blocks(page, "sh"):
        subprocess.run(["sh", "-n", "-c", block], check=True)


def test_the_page_names_every_command_and_every_exit_code() -> None:
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    for command in main.app.registered_commands:
        assert re.search(rf"`{command.name}\b", page), command.name
    codes = {value for name, value in vars(failures).items() if name.isupper() and isinstance(value, int)}
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", page, flags=re.MULTILINE)} == codes


def test_the_page_names_every_call_and_every_error_of_the_client() -> None:
    page = (DOCS / "client.md").read_text(encoding="utf-8")
    calls = [name for name in vars(Client) if not name.startswith("_") and name != "close"]
    kinds = [name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)]
    for name in (*calls, *kinds):
        assert re.search(rf"`{name}\b", page), name


def test_every_file_that_a_page_names_is_there() -> None:
    for page in DOCS.glob("*.md"):
        for target in re.findall(r"\]\((?!http|#)([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            assert (DOCS / target).exists(), (page.name, target)
