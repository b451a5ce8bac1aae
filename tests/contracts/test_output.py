"""No module prints around the one escape: what is shown to a person cannot tell a terminal what to do."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.source_tree import ROOT

SOURCE = ROOT / "src" / "sevenfold"

PRINTERS = {
    "cli/screen.py": "the escape of all commands",
    "agent/tui/terminal.py": "the escape of a chat",
    "agent/tui/early_input.py": "the input line before there is a chat, which shows what is typed",
    "agent/tui/prompt_input.py": "the stream below a chat, written to by the terminal library",
    "agent/tui/text_renderer.py": "the terminal library, into memory",
    "agent/opening/teammate.py": "the main program of a process whose streams are pipes to its lead",
    "agent/tools/worker.py": "a process whose output is a pipe to its parent",
    "resident/hook_script.py": "the main program of a hook, whose output is a pipe to the agent",
    "agent/mcp/child_supervisor.py": "a process whose output is a pipe to its parent",
    "integrations/mcp_server/backend.py": "a process whose errors go to the log of an agent; it escapes them",
    "agent/sandbox/supervisor.py": "a process whose output is a pipe to its parent",
}
"""Modules that may write to a standard stream, and why. A new one shows how it escapes."""

HARMLESS = frozenset({"isatty", "encoding", "fileno", "flush"})
"""What may be asked of a stream without writing to it."""


MENTIONS = re.compile(r"\bprint|\binput\b|\bgetpass|\bsys\b|\bos\.write\b")
"""A file without one of these has nothing to find; parsing it takes longest."""


def find_prints(source: str) -> Iterator[str]:
    if MENTIONS.search(source) is None:
        return
    tree = ast.parse(source)
    asked = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr in HARMLESS
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="print" | "input" | "getpass")):
                yield f"{node.lineno}: calls {ast.unparse(node.func)}"
            case ast.Attribute(value=ast.Name(id="sys"), attr=name):
                if name.strip("_") in ("stdout", "stderr") and id(node) not in asked:
                    yield f"{node.lineno}: uses sys.{name}"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="write"), args=[to, *_]):
                if isinstance(to, ast.Constant) and to.value in (1, 2):
                    yield f"{node.lineno}: writes to descriptor {to.value}"
            case ast.Call(func=ast.Attribute(attr="getpass" | "print" | "print_exc" | "print_exception")):
                yield f"{node.lineno}: calls {ast.unparse(node.func)}"
            case ast.ImportFrom(module="sys", names=imported):
                yield from (f"{node.lineno}: imports sys.{one.name}" for one in imported if "std" in one.name)
            case _:
                pass


def prints_in(folder: Path) -> list[str]:
    found: list[str] = []
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        if name not in PRINTERS:
            found += [f"{name}:{said}" for said in find_prints(path.read_text(encoding="utf-8"))]
    return found


def test_no_module_prints_around_the_escape() -> None:
    assert prints_in(SOURCE) == [], "print through cli/screen.py, or the terminal of a chat"


def test_every_module_that_may_print_is_there() -> None:
    assert [name for name in PRINTERS if not (SOURCE / name).is_file()] == []


@pytest.mark.parametrize(
    "line",
    [
        *("print('x')", "sys.stdout.write('x')", "sys.stderr.write('x')", "show(sys.stdout)", "input('x')"),
        *("os.write(1, b'x')", "os.write(2, b'x')", "from sys import stdout", "traceback.print_exc()"),
        *(
            "getpass('x')",
            "getpass.getpass('x')",
            "sys.__stdout__.write('x')",
            "console.print('x')",
            "out = sys.stdout",
        ),
    ],
)
def test_a_planted_print_is_found(tmp_path: Path, line: str) -> None:
    (tmp_path / "planted.py").write_text(f"{line}\n")
    assert len(prints_in(tmp_path)) == 1


@pytest.mark.parametrize(
    "line", ["sys.stdout.isatty()", "sys.stdout.encoding", "os.write(fd, b'x')", "sys.stdin"]
)
def test_asking_a_stream_is_no_print(tmp_path: Path, line: str) -> None:
    (tmp_path / "plain.py").write_text(f"{line}\n")
    assert prints_in(tmp_path) == []
