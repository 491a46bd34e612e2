"""The README is true: each of its commands runs, in its order, on the stack that it tells one to start."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.integration.local_stack import PATIENCE_SECONDS, ROOT, eventually

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),  # seconds; several real servers and processes start here
    pytest.mark.skipif(shutil.which("make") is None, reason="the README's commands need make"),
]

README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKE = ("make", "-o", ".venv/.ready")  # the set-up has run, or these tests would not; it is not the subject here


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def section(title: str) -> str:
    return README.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COMPACTD_", "ANTHROPIC_"))}
    return kept | {"COMPACTD_LOCAL_DIR": str(folder), "COMPACTD_PORT": "0"}


def run(script: str, folder: Path, environ: Mapping[str, str]) -> str:
    """What the script writes; it runs in a folder where `.venv` is the one of these tests."""
    done = subprocess.run(
        ["sh", "-eu", "-c", script], cwd=folder, env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the stack that `make up` runs."""
    folder = tmp_path_factory.mktemp("readme") / "local"
    state = folder / "stack.json"
    process = subprocess.Popen(
        [*MAKE, "up"], cwd=ROOT, env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        eventually(lambda: state.exists() or process.poll() is not None)
        assert process.poll() is None, process.communicate()[0]
        yield folder
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workplace")
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


def test_the_demo_runs_the_main_job_and_stops(tmp_path: Path) -> None:
    assert section("Two commands").count("make demo\n") == 1
    done = subprocess.run(
        [*MAKE, "demo"],
        cwd=ROOT,
        env=environment(tmp_path / "local"),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Session +demo-", done.stdout, flags=re.MULTILINE)
    assert re.search(r"^Job +[0-9a-f-]{36}  succeeded$", done.stdout, flags=re.MULTILINE)
    assert re.search(r"before +[\d,]+ ", done.stdout)
    assert re.search(r"after +[\d,]+ ", done.stdout)
    assert "extractive, made without a model" in done.stdout
    for number in range(1, 10):
        assert re.search(rf"^ +{number}\. [A-Z]", done.stdout, flags=re.MULTILINE), number
    assert re.search(r"^api_messages +\d+ ", done.stdout, flags=re.MULTILINE)
    assert not (tmp_path / "local" / "stack.json").exists()
    steps = done.stdout.split("Try next", 1)[1].splitlines()[1:]
    assert [step.split("#")[0].strip() for step in steps[:2]] == ["make up", ". .venv/bin/activate"]


def test_the_sizes_of_the_sample_are_told_as_what_they_are(stack: Path, workplace: Path) -> None:
    """The log has the count of the model's API; the demo shows our estimate of the messages alone."""
    counted, estimated = re.findall(r"(\d+,000)", section("Two commands"))
    script = '. .venv/bin/activate\neval "$(compactd env)"\ncompactd demo --json\n'
    result = json.loads(run(script, workplace, environment(stack)))["result"]
    assert round(result["pre_tokens"], -4) == int(counted.replace(",", ""))
    assert round(result["boundary"]["metadata"]["estimated_tokens"], -3) == int(estimated.replace(",", ""))


def test_make_test_runs_the_tests() -> None:
    assert "make test\n" in section("Two commands")
    planned = subprocess.run([*MAKE, "-n", "test"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert "-m pytest" in planned.stdout


def test_every_block_of_commands_belongs_to_a_test() -> None:
    walk = section("A walk with curl")
    told = [block for block in blocks("sh") if block not in {"make demo\nmake test\n", "make up\n"}]
    assert told
    assert all(block in walk for block in told)


@pytest.mark.skipif(shutil.which("curl") is None, reason="the walk needs curl")
def test_the_walk_with_curl_arrives(stack: Path, workplace: Path) -> None:
    walk = [block for block in blocks("sh") if block in section("A walk with curl") and block != "make up\n"]
    script = "echo; echo '#####'\n".join(walk)
    parts = run(script, workplace, environment(stack)).split("\n#####\n")
    ready, imported, session, _enqueued, waited, listed = (part.strip() for part in parts)
    assert json.loads(ready)["status"] == "ready"
    assert json.loads(imported)["appended"] > 200
    assert json.loads(session)["id"] == "walk"
    job, result, messages = documents(waited)
    assert (job["status"], job["instructions"]) == ("succeeded", "Keep every decision about retries.")
    assert result["post_tokens"] < result["pre_tokens"] / 5
    assert messages["data"] == result["api_messages"]
    assert job["id"] in listed


def documents(text: str) -> Iterator[Any]:
    """JSON documents that stand one behind the other, as curl writes answers."""
    decoder, place = json.JSONDecoder(), 0
    while place < len(text):
        value, place = decoder.raw_decode(text, place)
        yield value


def test_the_python_example_runs(stack: Path, workplace: Path) -> None:
    (example,) = blocks("python")
    (workplace / "example.py").write_text(example, encoding="utf-8")
    script = '. .venv/bin/activate\neval "$(compactd env)"\npython example.py\n'
    told = run(script, workplace, environment(stack)).splitlines()
    match = re.fullmatch(r"extractive: (\d+) tokens became (\d+)", told[0])
    assert match is not None, told
    assert int(match[2]) < int(match[1])
    assert re.fullmatch(r"go on with \d+ messages", told[1])


def test_every_file_that_the_readme_names_is_there() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
    for name in ("docker-compose.yml", ".env.example"):
        assert (ROOT / name).exists()
