"""The source tree, and how the gates look at it."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = tuple(folder for folder in ("src", "tests", "bench") if any((ROOT / folder).rglob("*.py")))


def source_files(*folders: str) -> list[Path]:
    """Every Python file under these folders of the tree."""
    return sorted(path for folder in folders or CODE for path in (ROOT / folder).rglob("*.py"))


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Every statement of a tree, without a look at its expressions, which are most of it."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for node in getattr(tree, field, ()):
            if isinstance(node, ast.stmt):
                yield node
            yield from statements(node)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def run(
    command: Sequence[str], *, cwd: Path = ROOT, stdin: str = "", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a tool of the virtual environment and keep what it said; colours and caches stay out of it."""
    plain = {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "200", **(env or {})}
    return subprocess.run(
        command,
        cwd=cwd,
        input=stdin,
        env={**os.environ, **plain},
        capture_output=True,
        text=True,
        check=False,
    )


_EACH = """
import json, sys
for number, code in enumerate(json.load(sys.stdin), 1):
    exec(compile(code, f"<snippet {number}>", "exec"), {"__name__": "__main__"})
"""


def run_snippets(snippets: Sequence[str], *, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run snippets in turn, each with names of its own, in one process: its start takes longest."""
    return run([sys.executable, "-W", "error", "-c", _EACH], cwd=cwd, stdin=json.dumps(snippets))


def tool(name: str) -> str:
    """A console script that was installed beside this interpreter."""
    return str(Path(sys.executable).parent / name)


def tracked_files() -> Iterator[Path]:
    """What git would hand to a stranger, new files included; without git, what is not hidden."""
    listing = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
    if listing.returncode == 0:
        yield from (path for name in listing.stdout.split("\0") if name and (path := ROOT / name).is_file())
        return
    for folder in (*CODE, "docs", ".ci"):
        yield from (path for path in (ROOT / folder).rglob("*") if path.is_file() and path.suffix != ".pyc")
    yield from (path for path in ROOT.iterdir() if path.is_file())
