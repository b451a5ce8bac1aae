"""Git is started by one module, which keeps a repository's configuration away from it."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

import pytest

from tests.contracts.source_tree import parse, relative, source_files

pytestmark = pytest.mark.gate

SAFE = "src/sevenfold/store/safe_git.py"
STARTING = frozenset(
    {
        *("Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"),
        *("create_subprocess_exec", "create_subprocess_shell", "subprocess_exec", "subprocess_shell"),
        *("system", "popen", "startfile", "posix_spawn", "posix_spawnp", "open_process", "stdio_client"),
        *("execv", "execve", "execvp", "execvpe", "execl", "execle", "execlp", "execlpe"),
        *("spawnv", "spawnve", "spawnvp", "spawnvpe", "spawnl", "spawnle", "spawnlp", "spawnlpe"),
    }
)
OWNERS = frozenset({"subprocess", "asyncio", "os", "anyio", "pty", "loop", "mcp.client.stdio"})
NOT_PROGRAMS = frozenset({("asyncio", "run"), ("anyio", "run"), ("loop", "run")})

STARTERS = {
    SAFE: "git",
    "src/sevenfold/agent/subagents/teammate_process.py": "this program, as a teammate",
    "src/sevenfold/cli/inspect/doctor.py": "ripgrep, for its version",
    "src/sevenfold/cli/memory/change.py": "the user's editor",
    "src/sevenfold/cli/tour/team.py": "this program, for the tour",
    "src/sevenfold/agent/sandbox/command.py": "the supervisor of a command",
    "src/sevenfold/agent/sandbox/supervisor.py": "a command, confined",
    "src/sevenfold/agent/hooks/runner.py": "a hook that the user agreed to",
    "src/sevenfold/agent/tui/user_input.py": "the program that prints an image of the clipboard",
    "src/sevenfold/agent/mcp/child_supervisor.py": "a command's first process",
    "src/sevenfold/agent/mcp/servers.py": "an MCP server that the user agreed to",
    "src/sevenfold/agent/tools/search.py": "ripgrep",
    "src/sevenfold/agent/tools/web_fetch.py": "Python, to convert a page",
    "src/sevenfold/resident/client.py": "this program, as the resident process",
    "src/sevenfold/cli/proxy.py": "the agent that a person wants to run",
    "src/sevenfold/layers/memory/search/encoders.py": "pip, to fetch weights",
}
"""Every module that starts a program, and which. A new one has to say here that it is not git."""


MENTIONS = re.compile(
    rf"\bgit\b|safe_git|\b(?:{'|'.join(OWNERS)})\.(?:{'|'.join(STARTING)})\b|\bimport .* as "
    rf"|\bfrom (?:{'|'.join(OWNERS)}) import\b"
)
"""A file without one of these starts no program and names no git; parsing it takes longest."""


def starts(nodes: Sequence[ast.AST]) -> list[ast.Call]:
    """Calls that start a program, however their function was imported."""
    bare: set[str] = set()
    renamed: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module in OWNERS:
            module = node.module
            names = (alias for alias in node.names if (module, alias.name) not in NOT_PROGRAMS)
            bare |= {alias.asname or alias.name for alias in names if alias.name in STARTING}
        elif isinstance(node, ast.Import):
            renamed |= {alias.asname: alias.name for alias in node.names if alias.asname}
    return [node for node in nodes if isinstance(node, ast.Call) and _is_start(node.func, bare, renamed)]


def _is_start(function: ast.expr, bare: set[str], renamed: dict[str, str]) -> bool:
    if isinstance(function, ast.Name):
        return function.id in bare
    if not isinstance(function, ast.Attribute) or function.attr not in STARTING:
        return False
    owner = function.value.id if isinstance(function.value, ast.Name) else ""
    owner = renamed.get(owner, owner)
    return owner in OWNERS and (owner, function.attr) not in NOT_PROGRAMS


def names_git(node: ast.AST) -> bool:
    """A text that is git's name, its path, or a command line that begins with either."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    words = node.value.split()
    return bool(words) and words[0].rpartition("/")[2] == "git" and "\n" not in node.value


def git_calls(tree: ast.Module, path: str) -> list[str]:
    """Where a module starts git, prepares to, or starts a program that nobody has listed."""
    if path == SAFE:
        return []
    nodes = list(ast.walk(tree))
    calls = starts(nodes)
    found = [f"line {call.lineno}: starts a program" for call in calls if path not in STARTERS]
    given = {
        alias.asname or alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("safe_git")
        for alias in node.names
    }
    for call in calls:
        used = {node.id for node in ast.walk(call) if isinstance(node, ast.Name)}
        found += [f"line {call.lineno}: starts git"] if used & given else []
    for node in nodes:
        if isinstance(node, ast.Constant) and names_git(node) and calls:
            found.append(f"line {node.lineno}: names git where programs are started")
        # A command line that is handed to another module to be run.
        if isinstance(node, (ast.List, ast.Tuple)) and node.elts and _is_program(node.elts[0]):
            found.append(f"line {node.lineno}: a command line of git")
    return found


def _is_program(node: ast.expr) -> bool:
    return names_git(node) and isinstance(node, ast.Constant) and " " not in str(node.value)


def test_only_one_module_starts_git() -> None:
    files = [path for path in source_files("src") if MENTIONS.search(path.read_text(encoding="utf-8"))]
    assert {SAFE, *STARTERS} <= {relative(path) for path in files}
    found = {relative(path): git_calls(parse(path), relative(path)) for path in files}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_every_listed_module_still_starts_a_program() -> None:
    files = {relative(path): path for path in source_files("src")}
    assert [
        name for name in STARTERS if name not in files or not starts([*ast.walk(parse(files[name]))])
    ] == []


LISTED = "src/sevenfold/cli/inspect/doctor.py"


@pytest.mark.parametrize(
    ("path", "code", "told"),
    [
        ("src/new.py", "import subprocess\nsubprocess.run(x)", "line 2: starts a program"),
        ("src/new.py", "import subprocess as s\ns.run(x)", "line 2: starts a program"),
        ("src/new.py", "from os import execvp\nexecvp(x, y)", "line 2: starts a program"),
        ("src/new.py", "run_elsewhere(['git', 'status'])", "line 1: a command line of git"),
        ("src/new.py", "run_elsewhere(('/usr/bin/git', 'status'))", "line 1: a command line of git"),
        (LISTED, "subprocess.run('git status', shell=True)", "line 1: names git where programs are started"),
        (LISTED, "words = which('git')\nos.execv(words, [])", "line 1: names git where programs are started"),
        (LISTED, "from sevenfold.store.safe_git import GIT\nsubprocess.run([GIT])", "line 2: starts git"),
    ],
)
def test_a_git_call_elsewhere_is_found(path: str, code: str, told: str) -> None:
    assert told in git_calls(ast.parse(code), path)
    assert MENTIONS.search(code)


def test_words_about_git_are_no_call() -> None:
    code = "import asyncio\nasyncio.run(main())\nPHASES = ('git commit', 'git push')\nNAMES = {'git': 1}"
    assert git_calls(ast.parse(code), "src/new.py") == []
