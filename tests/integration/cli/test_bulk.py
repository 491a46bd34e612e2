"""`compactd bulk` on archives as people have them, through the running service, and on a bucket of a real S3 server."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]  # it ships no types
import httpx2
import psycopg
import pytest
from moto.server import ThreadedMotoServer

from ops.embedded import Valkey
from tests.integration.api.dashboard.visitor import token_in, words
from tests.integration.service import KEY, ROOT, Service, history

Json = Any
BUCKET = "archive"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, module_database_url: str, valkey: Valkey) -> Iterator[Service]:
    with Service(tmp_path_factory.mktemp("service"), module_database_url, valkey.url()) as running:
        yield running


@pytest.fixture(autouse=True)
def good_answers(service: Service) -> None:
    service.play()


@pytest.fixture
def s3() -> Iterator[dict[str, str]]:
    """A bucket; what a program must have in its environment to reach it."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    environ = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    yield environ
    server.stop()


def bucket(environ: dict[str, str]) -> Json:
    client = boto3.client(
        "s3",
        endpoint_url=environ["AWS_ENDPOINT_URL"],
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket=BUCKET)
    return client


def compactd(service: Service, *arguments: str, expected: int = 0, environ: dict[str, str] | None = None) -> str:
    """What the program writes."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "COMPACTD_"))}
    whole = {
        **inherited,
        "PYTHONPATH": str(ROOT),
        "COMPACTD_URL": str(service.http.base_url),
        "COMPACTD_API_KEY": KEY,
        "NO_PROXY": "127.0.0.1",
        **(environ or {}),
    }
    command = [str(Path(sys.executable).parent / "compactd"), "bulk", *arguments]
    done = subprocess.run(command, env=whole, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == expected, done.stderr + done.stdout
    return done.stdout


def transcript(name: str) -> bytes:
    """One message per line; `name` keeps archives apart, for ids of such files come from their messages."""
    told = [{"role": "user", "content": f"This is {name}."}, *history(3)[1:]]
    return b"".join(json.dumps(message).encode() + b"\n" for message in told)


def conversation(name: str) -> bytes:
    return json.dumps({"id": name, "messages": history(3)}).encode() + b"\n"


def test_an_archive_of_all_kinds_is_compacted_once(service: Service, tmp_path: Path) -> None:
    """Plain, packed and many sessions in one file; a hidden folder and other files are left alone."""
    (tmp_path / "deep").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "a.jsonl").write_bytes(transcript("hidden"))
    (tmp_path / "notes.txt").write_text("nothing")
    (tmp_path / "plain.jsonl").write_bytes(transcript("plain"))
    (tmp_path / "deep" / "packed.jsonl.gz").write_bytes(gzip.compress(transcript("packed")))
    (tmp_path / "many.jsonl").write_bytes(conversation("many-a") + conversation("many-b"))
    plan = json.loads(compactd(service, str(tmp_path), "--dry-run", "--json"))
    assert (plan["state"], plan["sessions"]) == ("ready", {"found": 4, "skipped": 0})
    assert service.calls == []
    done = json.loads(compactd(service, "resume", plan["id"], "--json"))
    assert (done["state"], done["request_counts"]["succeeded"]) == ("ended", 4)
    assert len(service.calls) == 4
    told = [json.loads(line) for line in compactd(service, "results", plan["id"]).splitlines()]
    assert {"many-a", "many-b"} < {line["session_id"] for line in told}
    again = json.loads(compactd(service, str(tmp_path), "--json"))
    assert again["skipped"] == {"unchanged": 4}
    assert len(service.calls) == 4


def test_conversations_without_ids_are_named_by_what_they_say(service: Service, tmp_path: Path) -> None:
    """Files of the same name in two folders share no session; the same conversation in both is one."""
    said = [
        json.dumps({"messages": [{"role": "user", "content": f"Nameless {n}."}, *history(3)[1:]]}) for n in range(3)
    ]
    for folder, own in (("a", said[0]), ("b", said[1])):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "log.jsonl").write_text(f"{own}\n{said[2]}\n")
    plan = json.loads(compactd(service, str(tmp_path), "--dry-run", "--json"))
    assert plan["sessions"] == {"found": 3, "skipped": 0}
    names = [json.loads(line)["session_id"] for line in compactd(service, "results", plan["id"]).splitlines()]
    assert all(name.startswith("import-") for name in names)
    assert {len(service.view(name, "full")) for name in names} == {len(history(3))}
    compactd(service, "cancel", plan["id"])


def test_a_file_that_cannot_be_read_is_told_and_the_others_are_done(service: Service, tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_bytes(transcript("good"))
    (tmp_path / "odd.json").write_text('{"not": "a transcript"}')
    said = json.loads(compactd(service, str(tmp_path), "--json", expected=1))
    assert said["request_counts"]["succeeded"] == 1


def test_a_folder_without_transcripts_says_what_it_looked_for(service: Service, tmp_path: Path) -> None:
    compactd(service, str(tmp_path), expected=2)


def test_results_are_written_beside_a_manifest_and_can_be_imported(service: Service, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "many.jsonl").write_bytes(conversation("written-a") + conversation("written-b"))
    compactd(service, str(tmp_path / "in"), "--to", f"file://{tmp_path}/out", "--json")
    entries = [json.loads(line) for line in (tmp_path / "out" / "manifest.jsonl").read_text().splitlines()]
    assert {entry["session_id"] for entry in entries} == {"written-a", "written-b"}
    for entry in entries:
        lines = (tmp_path / "out" / entry["file"]).read_text().splitlines()
        assert json.loads(lines[1])["is_compact_summary"] is True
    assert sorted(path.name for path in (tmp_path / "in").iterdir()) == ["many.jsonl"]


def manifest(folder: Path) -> list[Json]:
    return [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]


def test_names_that_look_alike_have_files_of_their_own(service: Service, tmp_path: Path) -> None:
    (tmp_path / "many.jsonl").write_bytes(conversation("like:a") + conversation("like_a"))
    compactd(service, str(tmp_path / "many.jsonl"), "--to", f"file://{tmp_path}/out", "--json")
    files = {entry["session_id"]: entry["file"] for entry in manifest(tmp_path / "out")}
    assert files == {"like:a": "like%3Aa.compacted.jsonl", "like_a": "like_a.compacted.jsonl"}


def test_the_archive_of_a_run_is_written_later_and_of_unchanged_sessions_too(service: Service, tmp_path: Path) -> None:
    """Another process writes it, over what one that was stopped had left; a plan has nothing to write."""
    source, out, other = tmp_path / "many.jsonl", tmp_path / "out", tmp_path / "other"
    source.write_bytes(conversation("later-a") + conversation("later-b"))
    plan = json.loads(compactd(service, str(source), "--dry-run", "--json"))
    compactd(service, "write", plan["id"], "--to", str(out), expected=2)
    assert not out.exists()
    compactd(service, "resume", plan["id"])
    out.mkdir()
    (out / "later-a.compacted.jsonl").write_text("half a li")
    (out / "theirs.txt").write_text("left alone")
    assert "2 files" in compactd(service, "write", plan["id"], "--to", str(out))
    written = {path.name: path.read_bytes() for path in out.iterdir()}
    assert set(written) == {"later-a.compacted.jsonl", "later-b.compacted.jsonl", "manifest.jsonl", "theirs.txt"}
    again = json.loads(compactd(service, str(source), "--to", str(other), "--json"))
    assert again["skipped"] == {"unchanged": 2}
    assert {entry["result"]["type"] for entry in manifest(other)} == {"skipped"}
    for name in ("later-a.compacted.jsonl", "later-b.compacted.jsonl"):
        assert (other / name).read_bytes() == written[name]
    assert len(service.calls) == 2


def test_a_result_that_was_deleted_is_told_and_has_no_file(service: Service, tmp_path: Path) -> None:
    (tmp_path / "many.jsonl").write_bytes(conversation("gone-a") + conversation("gone-b"))
    run = json.loads(compactd(service, str(tmp_path / "many.jsonl"), "--json"))
    told = [json.loads(line) for line in compactd(service, "results", run["id"]).splitlines()]
    gone = next(line["result"]["job_id"] for line in told if line["session_id"] == "gone-a")
    with psycopg.connect(service.database_url.replace("+psycopg", "")) as conn:
        conn.execute("UPDATE sessions SET live_job_id = NULL WHERE name = 'gone-a'")
        conn.execute("DELETE FROM results WHERE job_id = %s", [gone])
    assert "1 files" in compactd(service, "write", run["id"], "--to", str(tmp_path / "out"), expected=1)
    assert {entry["session_id"] for entry in manifest(tmp_path / "out") if "file" in entry} == {"gone-b"}


def test_a_bucket_is_read_and_written(service: Service, s3: dict[str, str]) -> None:
    client = bucket(s3)
    client.put_object(Bucket=BUCKET, Key="2026/one.jsonl", Body=transcript("bucket one"))
    client.put_object(Bucket=BUCKET, Key="2026/two.jsonl.gz", Body=gzip.compress(transcript("bucket two")))
    done = json.loads(
        compactd(service, f"s3://{BUCKET}/2026", "--to", f"s3://{BUCKET}/compacted", "--json", environ=s3)
    )
    assert done["request_counts"]["succeeded"] == 2
    listed = [entry["Key"] for entry in client.list_objects_v2(Bucket=BUCKET)["Contents"]]
    assert len([key for key in listed if key.startswith("compacted/") and key.endswith(".compacted.jsonl")]) == 2
    assert "compacted/manifest.jsonl" in listed


def test_the_report_is_figures_and_a_page_without_scripts(service: Service, tmp_path: Path) -> None:
    (tmp_path / "many.jsonl").write_bytes(conversation("told-a") + conversation("told-b"))
    run = json.loads(compactd(service, str(tmp_path), "--json"))
    page = tmp_path / "report.html"
    told = json.loads(compactd(service, "report", run["id"], "--html", str(page), "--json"))
    assert told["succeeded"] == 2
    assert told["strategies"][0]["strategy"] == "fresh"
    assert told["tokens_after"]["median"] < told["tokens_before"]["median"]
    text = page.read_text()
    assert "<svg" in text
    assert "<script" not in text
    assert run["id"] in text


def test_the_dashboard_shows_a_run_that_has_ended(service: Service, tmp_path: Path) -> None:
    (tmp_path / "many.jsonl").write_bytes(conversation("seen-a") + conversation("seen-b"))
    run = json.loads(compactd(service, str(tmp_path), "--json"))
    with httpx2.Client(base_url=service.http.base_url, follow_redirects=True) as visitor:
        form = visitor.get("/dashboard/sign-in").text
        home = visitor.post("/dashboard/sign-in", data={"csrf": token_in(form), "key": KEY}).text
        assert "Bulk runs" in words(home)
        listed = words(visitor.get("/dashboard/bulk").text)
        told = visitor.get(f"/dashboard/bulk/{run['id']}").text
    assert "ended" in listed
    assert "2 / 2" in listed
    assert "2 / 2 sessions" in words(told)
    assert "of 2 sessions" in words(told)
    assert "name=seen-a" in told
