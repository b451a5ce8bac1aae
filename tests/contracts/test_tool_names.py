"""Tool names are listed in one module, so that no second list can drift away from it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sevenfold.core import tool_kinds
from sevenfold.core.tool_kinds import TOOLS, normalize
from tests.contracts.source_tree import parse, relative, source_files

pytestmark = pytest.mark.gate

TABLE = relative(Path(tool_kinds.__file__))

ORDINARY = frozenset(
    [
        *(
            "agent",
            "analyze",
            "browse",
            "cat",
            "create",
            "delegate",
            "edit",
            "exec",
            "execute",
            "fetch",
            "find",
        ),
        *(
            "inbox",
            "list",
            "mail",
            "memory",
            "monitor",
            "patch",
            "plan",
            "read",
            "replace",
            "search",
            "shell",
        ),
        *("skill", "task", "terminal", "todo", "tree", "view", "write"),
    ]
)
"""Names that are everyday words too: of an effect, a command of ours, an operation of a disk. Together they
are a list of tools only where the name of a tool is compared with them."""

ALLOWED = {
    # Actions of the memory tool, which this module serves.
    "src/sevenfold/integrations/memory_tool.py": {"create", "str_replace", "view"},
    # Programs that a command line starts.
    "src/sevenfold/layers/session_notes/work_ledger.py": {"cat", "grep"},
    "src/sevenfold/core/text/command_lines.py": {"cat", "find", "grep", "ls", "read"},
    "src/sevenfold/core/text/globs.py": {"find", "ls"},
    # Languages of fenced code.
    "src/sevenfold/layers/memory/trust/claims.py": {"bash", "shell"},
    # The two tools that this module defines.
    "src/sevenfold/agent/mcp/client.py": {"mcp_call", "tool_search"},
    # Words of a permission rule that stand for all tools that read or edit.
    "src/sevenfold/agent/permissions/rules.py": {"edit", "read"},
}
"""By module: tool names that mean something else there, or that are its own."""

_NAME = re.compile(r"[A-Za-z](?:[\w.-]*[A-Za-z0-9])?")
_ALTERNATIVE = re.compile(r"(?<=[|(:^])[\w-]+(?=[|)$])")
_TOOL_NAME = re.compile(r"\btool\b|\btool_name\b|\b(?:use|block|call)\.name\b")


def strings(nodes: Iterator[ast.expr | None]) -> Iterator[str]:
    """The texts among these expressions, and in what is unpacked into them."""
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Starred):
            yield from listed(node.value)
        elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            yield from strings(iter(node.elts))


def listed(node: ast.AST) -> list[str]:
    """The texts that this node lists: in a collection, a comparison, a pattern or a text that is split."""
    match node:
        case ast.Tuple(elts=elts) | ast.List(elts=elts) | ast.Set(elts=elts):
            return list(strings(iter(elts)))
        case ast.Dict(keys=keys, values=values):
            return [*strings(iter(keys)), *strings(iter(values))]
        case ast.Compare(left=left, comparators=right):
            return list(strings(iter((left, *right))))
        case ast.BoolOp(values=values):
            return [text for value in values if isinstance(value, ast.Compare) for text in listed(value)]
        case ast.MatchOr(patterns=patterns):
            return list(strings(one.value for one in patterns if isinstance(one, ast.MatchValue)))
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="split")):
            return text.split()
        case ast.Call(func=ast.Attribute(attr="compile"), args=[ast.Constant(value=str(text)), *_]):
            return _ALTERNATIVE.findall(text)
        case _:
            return []


def is_known(text: str) -> bool:
    return bool(_NAME.fullmatch(text)) and normalize(text) in TOOLS


def is_about_tools(node: ast.AST) -> bool:
    """Whether a comparison asks for the name of a tool."""
    match node:
        case ast.Compare(left=left):
            return bool(_TOOL_NAME.search(ast.unparse(left)))
        case ast.BoolOp(values=values):
            return all(is_about_tools(value) for value in values)
        case _:
            return False


def tool_lists(tree: ast.Module, allowed: set[str] | None = None) -> list[str]:
    """Where this module lists two known tool names or more."""
    found: dict[int, str] = {}
    for node in ast.walk(tree):
        known = {text for text in listed(node) if is_known(text)} - (allowed or set())
        if len(known) > 1 and (known - ORDINARY or is_about_tools(node)):
            line = getattr(node, "lineno", 0)
            found.setdefault(line, f"line {line}: {', '.join(sorted(known))}")
    return list(found.values())


def test_no_module_but_the_table_lists_tool_names() -> None:
    files = [path for path in source_files("src") if relative(path) != TABLE]
    found = {relative(path): tool_lists(parse(path), ALLOWED.get(relative(path))) for path in files}
    assert {path: lists for path, lists in found.items() if lists} == {}, f"ask {TABLE} instead"


@pytest.mark.parametrize("path", ALLOWED)
def test_what_is_allowed_is_still_there(path: str) -> None:
    module = next(file for file in source_files("src") if relative(file) == path)
    assert tool_lists(parse(module))


def test_the_table_itself_lists_tool_names() -> None:
    table = next(file for file in source_files("src") if relative(file) == TABLE)
    assert tool_lists(parse(table))


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("EDITORS = frozenset({'edit', 'multiedit'})", "line 1: edit, multiedit"),
        ("READERS = ('Read', 'read')", "line 1: Read, read"),
        ("KINDS = {'grep': 1, 'glob': 2}", "line 1: glob, grep"),
        ("THEIRS = {'shell': 'Bash'}", "line 1: Bash, shell"),
        ("WEB = [*('web_fetch', 'x'), 'web_search']", "line 1: web_fetch, web_search"),
        ("NAMES = 'apply_patch exec_command'.split()", "line 1: apply_patch, exec_command"),
        ("PATTERN = re.compile(r'^(?:bash|exec_command)$')", "line 1: bash, exec_command"),
        ("use.name in ('read', 'edit')", "line 1: edit, read"),
        ("use.name == 'read' or use.name == 'edit'", "line 1: edit, read"),
        ("match name:\n    case 'glob' | 'grep': pass", "line 2: glob, grep"),
    ],
)
def test_a_second_list_of_tools_is_found(code: str, told: str) -> None:
    assert tool_lists(ast.parse(code)) == [told]


@pytest.mark.parametrize(
    "code",
    [
        "use.name == 'memory'",
        "action.kind in ('edit', 'write')",
        "SHARE = {'read': 1.0, 'edit': 1.0, 'shell': 0.1}",
        "spec = ToolSpec('grep', 'Find a text in files.')",
    ],
    ids=["one name", "effects", "by effect", "our own tool"],
)
def test_one_name_or_words_that_name_effects_are_no_list_of_tools(code: str) -> None:
    assert tool_lists(ast.parse(code)) == []
