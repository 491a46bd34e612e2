"""Makes `.venv` ready: a virtual environment with the packages of requirements.lock and the project itself.

Runs on a bare Python >= 3.11 with the standard library alone. The project is linked by a `.pth` file and a launcher for
each console script, so that no build back end has to be fetched. The environment may be moved together with its folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import time
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
READY = VENV / ".ready"
LOCK = ROOT / "requirements.lock"
ERROR_TAIL_LINES = 15  # pip says what is wrong in its last lines

# The first lines are Python and shell at once, as pip writes them: no absolute path, no limit on its length.
LAUNCHER = """\
#!/bin/sh
'''exec' "$(dirname "$(readlink -f "$0")")/python" "$0" "$@"
' '''
import sys

from {module} import {function}

sys.exit({function}())
"""


class SetupError(Exception):
    """Set-up cannot go on; the text says what to do."""


def fingerprint() -> str:
    """What the environment was made from; another text means that it is stale."""
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    return f"{sys.version_info.major}.{sys.version_info.minor} {digest}\n"


def run(command: list[str], *, env: dict[str, str] | None = None, loud: bool = True) -> bool:
    """True if the command ended well; otherwise, if `loud`, the end of its output is shown."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode and loud:
        print("\n".join(done.stdout.splitlines()[-ERROR_TAIL_LINES:]), file=sys.stderr)
    return done.returncode == 0


def install_with_uv(uv: str) -> bool:
    """Installs by uv, which is many times faster; False where it does not work (it ignores pip's configuration)."""
    env = {**os.environ, "UV_PYTHON_DOWNLOADS": "never", "VIRTUAL_ENV": str(VENV)}
    made = is_usable() or run([uv, "venv", "--clear", "--python", sys.executable, str(VENV)], env=env, loud=False)
    if made and run([uv, "pip", "install", "--require-hashes", "-r", str(LOCK)], env=env, loud=False):
        return True
    print("uv could not install the packages; trying pip ...", flush=True)
    return False


def is_usable(*, pip: bool = False) -> bool:
    """Whether `.venv` has a Python of our version (and pip in it, if asked)."""
    if not PYTHON.exists():
        return False
    probe = f"import sys{', pip' if pip else ''}; sys.exit(sys.version_info[:2] != {tuple(sys.version_info[:2])})"
    done = subprocess.run([str(PYTHON), "-c", probe], capture_output=True, check=False)
    return done.returncode == 0


def install_with_pip() -> None:
    """Makes the environment if needed and installs the locked packages, each checked against its hash."""
    if not is_usable(pip=True):
        try:
            import ensurepip  # noqa: F401, PLC0415 - Debian splits it off; asked only where it is needed
        except ImportError:
            version = f"{sys.version_info.major}.{sys.version_info.minor}"
            message = (
                f"This Python has no venv module: install python{version}-venv (Debian, Ubuntu) or uv, then try again."
            )
            raise SetupError(message) from None
        venv.EnvBuilder(clear=True, symlinks=True, with_pip=True).create(VENV)
    env = {**os.environ, "PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    command = [str(PYTHON), "-m", "pip", "install", "--quiet", "--prefer-binary", "--require-hashes", "-r", str(LOCK)]
    if not run(command, env=env):
        raise SetupError(
            "pip could not install the packages (see above). Check the network or the package index, then try again."
        )


def link_project() -> None:
    """Lets the environment import the project and gives it the console scripts of pyproject.toml."""
    site_packages = Path(sysconfig.get_path("purelib", "venv", vars={"base": str(VENV), "platbase": str(VENV)}))
    relative = os.path.relpath(ROOT, site_packages)
    (site_packages / "compactd.pth").write_text(f"{relative}\n")  # relative: the folder may move
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for name, target in project.get("scripts", {}).items():
        module, function = target.split(":")
        launcher = VENV / "bin" / name
        launcher.write_text(LAUNCHER.format(module=module, function=function))
        launcher.chmod(0o755)


def install() -> None:
    """Brings `.venv` to what requirements.lock says."""
    READY.unlink(missing_ok=True)  # an interrupted set-up is not ready
    uv = shutil.which("uv")
    if not (uv and install_with_uv(uv)):
        install_with_pip()


def main() -> int:
    """Sets up `.venv` unless it is ready; two callers at once wait for each other."""
    (ROOT / ".cache").mkdir(exist_ok=True)
    with (ROOT / ".cache" / "setup.lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        try:
            if not (READY.exists() and READY.read_text() == fingerprint() and is_usable()):
                started = time.monotonic()
                print(f"Setting up .venv with Python {sys.version.split()[0]} (once, about a minute) ...", flush=True)
                install()
                print(f"Set-up done in {time.monotonic() - started:.0f} s.", flush=True)
            link_project()
        except KeyboardInterrupt:
            print("Set-up interrupted; the next make goes on.", file=sys.stderr)
            return 130
        except (SetupError, OSError, subprocess.CalledProcessError) as problem:
            print(f"Set-up failed: {problem}", file=sys.stderr)
            return 1
        READY.write_text(fingerprint())
    return 0


if __name__ == "__main__":
    sys.exit(main())
