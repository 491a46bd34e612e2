"""The set-up links the project without building it, and its launcher works from anywhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ops import lock, setup


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project in a folder with a blank in its name, with an empty environment of this Python."""
    root = tmp_path / "my project"
    (root / "shop").mkdir(parents=True)
    (root / "shop" / "__init__.py").touch()
    (root / "shop" / "till.py").write_text("import sys\ndef main():\n    print(*sys.argv[1:])\n    return 7\n")
    (root / "pyproject.toml").write_text('[project]\nname = "shop"\n[project.scripts]\nshop = "shop.till:main"\n')
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root / ".venv"], check=True)
    names = {"ROOT": root, "VENV": root / ".venv", "PYTHON": root / ".venv" / "bin" / "python"}
    for name, value in names.items():
        monkeypatch.setattr(setup, name, value)
    return root


def test_the_environment_imports_the_project_even_after_a_move(checkout: Path) -> None:
    setup.link_project()
    moved = checkout.rename(checkout.with_name("moved"))

    done = subprocess.run(
        [moved / ".venv" / "bin" / "python", "-c", "import shop; print(shop.__file__)"],
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == str(moved / "shop" / "__init__.py")


def test_the_launcher_runs_the_function_with_its_arguments_and_exit_code(checkout: Path, tmp_path: Path) -> None:
    setup.link_project()
    link = tmp_path / "link"
    link.symlink_to(checkout / ".venv" / "bin" / "shop")

    for launcher in (checkout / ".venv" / "bin" / "shop", link):
        done = subprocess.run([launcher, "a b", "c"], cwd="/", capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (7, "a b c\n")


def test_an_environment_of_another_python_is_not_usable(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert setup.is_usable()
    assert not setup.is_usable(pip=True)
    setup.PYTHON.unlink()
    assert not setup.is_usable()


def test_a_failing_command_shows_the_end_of_its_output(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = "for number in range(40): print('line', number)\nraise SystemExit(1)"

    assert not setup.run([sys.executable, "-c", program])
    assert capsys.readouterr().err.splitlines() == [f"line {number}" for number in range(25, 40)]


def test_a_lock_that_tells_about_its_machine_is_refused() -> None:
    clean = "a==1 \\\n    --hash=sha256:00\nb==2 \\\n    --hash=sha256:11\n"

    assert lock.locked_packages(clean) == 2
    for foreign in ("--index-url x\n", "c @ file" + ":///x\n"):
        with pytest.raises(ValueError, match="line 5"):
            lock.locked_packages(clean + foreign)
