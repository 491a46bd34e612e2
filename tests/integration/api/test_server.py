"""`python -m api` as a process: how it starts, what a socket sees, how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from compaction.settings import Settings
from tests.integration.api.conftest import KEY
from tests.integration.api.serving import Server, serving

HEADERS = {"Authorization": f"Bearer {KEY}"}


@pytest.fixture(scope="module")
def server(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(settings, tmp_path_factory.mktemp("api")) as running:
        yield running


def answer_on(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received or not received.rstrip().endswith(b"}"):
        more = connection.recv(65_536)
        if not more:
            break
        received += more
    return received


def test_the_ready_file_holds_the_real_port_and_the_process(server: Server) -> None:
    assert httpx2.get(f"{server.url}/healthz").json()["status"] == "ok"
    assert server.port != 0


def test_a_gigabyte_is_refused_at_its_announcement(server: Server) -> None:
    with server.connect() as connection:
        connection.sendall(
            b"POST /v1/sessions/import HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n"
            b"Authorization: Bearer " + KEY.encode() + b"\r\n\r\n" + b"x" * 1_000
        )
        received = answer_on(connection)
    assert received.startswith(b"HTTP/1.1 413")
    assert b'"code":"too_large"' in received


def test_an_endless_chunked_body_is_refused_while_it_comes(server: Server) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(1_000):
            yield b"x" * 1_000_000

    headers = {**HEADERS, "Content-Type": "application/json"}
    answer = httpx2.put(f"{server.url}/v1/sessions/big", content=chunks(), headers=headers, timeout=60)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert httpx2.get(f"{server.url}/healthz").is_success


def test_a_body_that_breaks_off_stores_nothing(server: Server) -> None:
    line = b'{"type":"user","uuid":"u","sessionId":"broken","message":{"role":"user","content":"Hi"}}\n'
    with server.connect() as connection:
        connection.sendall(
            b"POST /v1/sessions/import HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n"
            b"Authorization: Bearer " + KEY.encode() + b"\r\n\r\n" + line
        )
    answer = httpx2.get(f"{server.url}/v1/sessions/broken", headers=HEADERS)
    assert answer.status_code == 404


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_what_is_no_http_is_refused_and_the_process_lives(server: Server, request_bytes: bytes) -> None:
    with server.connect() as connection:
        connection.sendall(request_bytes)
        connection.shutdown(socket.SHUT_WR)
        received = connection.recv(65_536)
    assert received == b"" or received.startswith(b"HTTP/1.1 4")
    assert httpx2.get(f"{server.url}/healthz").is_success


def test_what_is_no_http_gets_a_problem_with_a_code(server: Server) -> None:
    with server.connect() as connection:
        connection.sendall(b"GARBAGE\r\n\r\n")
        head, _, body = answer_on(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"content-type: application/problem+json" in head
    problem = json.loads(body)
    assert (problem["status"], problem["code"]) == (400, "invalid_request")
    assert f"x-request-id: {problem['request_id']}".encode() in head


def test_requests_sent_in_one_go_are_answered_in_order(server: Server) -> None:
    one = b"GET /healthz HTTP/1.1\r\nHost: x\r\n%s\r\n"
    with server.connect() as connection:
        connection.sendall(one % b"" + one % b"X-Request-Id: second\r\nConnection: close\r\n")
        received = b""
        while more := connection.recv(65_536):
            received += more
    assert received.count(b"HTTP/1.1 200 OK") == 2
    assert received.rindex(b"x-request-id: second") > received.rindex(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\n", b"X: " + b"y" * 997 + b"\r\n"),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: ", b"y" * 1_000),
        (b"GET /", b"y" * 1_000),
        (b"POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;x=", b"y" * 1_000),
        (
            b"POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
            b"X: " + b"y" * 997 + b"\r\n",
        ),
    ],
    ids=["headers", "header", "address", "chunk extension", "trailers"],
)
def test_an_endless_head_is_cut_off_while_it_comes(server: Server, begin: bytes, piece: bytes) -> None:
    """Nobody has asked for a key yet: whoever may connect must not fill the memory."""
    sent = 0
    with server.connect() as connection:
        connection.sendall(begin)
        try:
            while sent < 20 * 2**20:
                connection.sendall(piece)
                sent += len(piece)
        except OSError:  # cut off
            pass
    assert sent < 20 * 2**20
    assert httpx2.get(f"{server.url}/healthz").is_success


def test_sigterm_ends_the_streams_and_the_process(settings: Settings, tmp_path: Path) -> None:
    with serving(settings, tmp_path) as server, server.connect() as connection:
        httpx2.put(f"{server.url}/v1/sessions/s2", json={"model": "claude-haiku-4-5"}, headers=HEADERS)
        job = httpx2.post(f"{server.url}/v1/compactions", json={"session_id": "s2"}, headers=HEADERS).json()
        head = f"GET /v1/compactions/{job['id']}/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n"
        connection.sendall(f"{head}Authorization: Bearer {KEY}\r\n\r\n".encode())
        received = b""
        while b"event: job\n" not in received:
            received += connection.recv(65_536)
        server.process.send_signal(signal.SIGTERM)
        while more := connection.recv(65_536):  # until the server closes it
            received += more
        assert received.endswith(b"0\r\n\r\n")  # a whole chunked answer: the browser comes again by itself
        assert server.process.wait(timeout=30) == 0


def test_the_log_is_json_lines_without_content_and_keys(server: Server) -> None:
    secret = "SECRET-4711"
    body = {"model": "claude-haiku-4-5", "system": secret}
    httpx2.put(f"{server.url}/v1/sessions/{secret}", json=body, headers=HEADERS)
    httpx2.put(f"{server.url}/v1/sessions/x", content=secret, headers={**HEADERS, "Content-Type": "application/json"})
    httpx2.get(f"{server.url}/v1/{secret}?{secret}", headers={"Authorization": f"Bearer {secret}"})
    requests = [line for line in server.lines() if line["event"] == "request"]
    assert {"method", "route", "status", "seconds", "request_id", "key"} <= set(requests[-1])
    text = server.log.read_text()
    assert secret not in text
    assert KEY not in text


def test_sigterm_lets_a_long_wait_answer_and_ends_with_0(settings: Settings, tmp_path: Path) -> None:
    with serving(settings, tmp_path) as server, server.connect() as connection:
        httpx2.put(f"{server.url}/v1/sessions/s1", json={"model": "claude-haiku-4-5"}, headers=HEADERS)
        job = httpx2.post(f"{server.url}/v1/compactions", json={"session_id": "s1"}, headers=HEADERS).json()
        path = f"/v1/compactions/{job['id']}".encode()
        connection.sendall(
            b"GET "
            + path
            + b" HTTP/1.1\r\nHost: x\r\nPrefer: wait=50\r\nAuthorization: Bearer "
            + KEY.encode()
            + b"\r\n\r\n"
        )
        time.sleep(0.5)  # the request is waiting by then; if not, it is answered all the same
        server.process.send_signal(signal.SIGTERM)
        received = answer_on(connection)
        assert received.startswith(b"HTTP/1.1 200")
        assert b'"status":"queued"' in received
        assert server.process.wait(timeout=30) == 0


def test_wrong_settings_end_the_start_with_their_names() -> None:
    environ = {"PATH": os.environ["PATH"], "COMPACTD_PORT": "many"}
    done = subprocess.run(
        [sys.executable, "-m", "api"], env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "COMPACTD_PORT" in done.stderr
    assert "COMPACTD_DATABASE_URL" in done.stderr
    assert "Traceback" not in done.stderr
