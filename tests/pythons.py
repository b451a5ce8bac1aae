"""Runs a short core set of tests with each Python that Sevenfold supports.

`make pythons` runs it. An interpreter is looked for on PATH, then among those of pyenv and uv. One that is
not found, or whose packages cannot be installed, is skipped with the reason.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
VERSIONS = ("3.11", "3.12", "3.13")
PACKAGES = (
    *("anthropic", "google-re2", "hypothesis", "pytest", "pytest-timeout", "pytest-xdist"),
    *("pyyaml", "snowballstemmer", "starlette", "uvicorn"),
)
TESTS = (
    *("tests/core/test_messages.py", "tests/core/test_json.py", "tests/core/test_system.py"),
    *("tests/session/test_session.py", "tests/session/test_cancelling.py"),
    *("tests/integrations/test_attach.py", "tests/integrations/test_attach_changes.py"),
)
"""What an interpreter changes most: threads and how they end, the event loop, JSON, dataclasses."""


def find_python(version: str, environ: dict[str, str]) -> str | None:
    """The interpreter of a version such as 3.12; None where there is none."""
    home = Path(environ.get("HOME") or "/")
    pyenv = Path(environ.get("PYENV_ROOT") or home / ".pyenv")
    uv = Path(environ.get("UV_PYTHON_INSTALL_DIR") or home / ".local/share/uv/python")
    candidates: list[str | Path | None] = [shutil.which(f"python{version}", path=environ.get("PATH"))]
    candidates += sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"), reverse=True)
    candidates += sorted(uv.glob(f"cpython-{version}.*/bin/python{version}"), reverse=True)
    for candidate in candidates:
        if candidate is not None and read_version(candidate) == version:
            return str(candidate)
    return None


def read_version(python: str | Path) -> str:
    """What an interpreter says it is; empty where it does not run, as pyenv's shims may not."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        ran = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False, cwd="/")
    except OSError:
        return ""
    return ran.stdout.strip() if ran.returncode == 0 else ""


def read_pins() -> Iterator[str]:
    """The pinned versions, without hashes: an interpreter may need another wheel of a package."""
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if re.match(r"[A-Za-z0-9]", line):
            yield line.removesuffix("\\").strip()


def prepare(python: str, version: str) -> str:
    """A virtual environment with the packages that the tests need, made once; its interpreter."""
    folder = ROOT / f".venv.{version}"
    own, done = folder / "bin/python", folder / ".ready"
    pins = "\n".join([*read_pins(), *PACKAGES, ""])
    if not done.exists() or done.read_text(encoding="utf-8") != pins:
        run([python, "-m", "venv", "--clear", folder])
        (folder / "pins.txt").write_text("\n".join(read_pins()), encoding="utf-8")
        pip = [own, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
        run([*pip, "--constraint", folder / "pins.txt", *PACKAGES])
        done.write_text(pins, encoding="utf-8")
    return str(own)


def run(command: list[str | Path]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


def run_tests(python: str, arguments: list[str]) -> bool:
    """Whether the tests passed."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    # A package that only some tests need is not installed there.
    environ.pop("SEVENFOLD_NO_SKIP", None)
    pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not story and not torture"]
    ran = subprocess.run([*pytest, *arguments, *TESTS], cwd=ROOT, env=environ, check=False)
    return ran.returncode == 0


def main(arguments: list[str]) -> int:
    failed: list[str] = []
    for version in VERSIONS:
        if version == read_version(sys.executable):
            own = sys.executable
        else:
            python = find_python(version, dict(os.environ))
            if python is None:
                _say(f"Python {version}: skipped: no python{version} on PATH, nor in pyenv, nor in uv")
                continue
            try:
                own = prepare(python, version)
            except (OSError, subprocess.CalledProcessError) as error:
                _say(f"Python {version}: skipped: cannot be set up: {_last_line(error)}")
                continue
        _say(f"Python {version}: {own}")
        if not run_tests(own, arguments):
            failed.append(version)
    if failed:
        _say(f"failed with Python {', '.join(failed)}")
    return bool(failed)


def _last_line(error: Exception) -> str:
    told = error.stderr if isinstance(error, subprocess.CalledProcessError) else ""
    return (str(told or "").strip().splitlines() or [str(error)])[-1]


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
