"""Benchmarks run in this process: to start another and import everything again takes longer than they do."""

from __future__ import annotations

import io
import runpy
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest.mock import patch

from tests.contracts.source_tree import ROOT

BENCH = ROOT / "bench"


@dataclass(frozen=True, slots=True)
class ScriptRun:
    """What a script printed, and the code it ended with."""

    returncode: int
    stdout: str
    stderr: str


def run_script(name: str, *arguments: str) -> ScriptRun:
    """Run a script of `bench` as `python bench/<name>` would."""
    out, err = io.StringIO(), io.StringIO()
    path = str(BENCH / name)
    with (
        patch.object(sys, "argv", [path, *arguments]),
        patch.object(sys, "path", [str(BENCH), *sys.path]),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = _exit_code(path, err)
    return ScriptRun(code, out.getvalue(), err.getvalue())


def _exit_code(path: str, err: io.StringIO) -> int:
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as ended:
        if isinstance(ended.code, str):
            err.write(f"{ended.code}\n")
            return 1
        return ended.code or 0
    return 0
