"""Where one line of source can be changed so that a test should notice.

Only code inside functions is changed. Left out: docstrings, annotations, decorators and defaults, the type
given to `cast`, f-strings (and with them most texts of errors and logs), and whatever spans several lines.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
LOOKUPS = frozenset({"endswith", "get", "partition", "pop", "removeprefix", "removesuffix", "startswith"})
"""Methods whose string arguments decide something."""
TYPE_CALLS = frozenset({"NewType", "TypeVar", "cast"})
"""Calls whose first argument is for a type checker."""
PROBE = 'getattr(__import__("builtins"), "mutation_probe", int)({})'
CACHES = frozenset({"cache", "cached_property", "lru_cache"})


@dataclass(frozen=True, slots=True, order=True)
class Mutant:
    """One changed line."""

    path: str
    """Of the file, relative to the root of the repository."""
    line: int
    operator: str
    original: str
    mutated: str
    is_cached: bool = False
    """In a function whose result is kept: of the tests that need it, only the first runs the line."""

    def apply(self, source: str) -> str:
        lines = source.split("\n")
        if lines[self.line - 1] != self.original:
            raise ValueError(f"{self.path}:{self.line} is no longer {self.original!r}; choose mutants again")
        lines[self.line - 1] = self.mutated
        return "\n".join(lines)


def compiles(mutant: Mutant, source: str) -> bool:
    try:
        compile(mutant.apply(source), mutant.path, "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def find_mutants(path: str, source: str) -> list[Mutant]:
    """Every mutant of a file, by line. A few may turn out not to compile."""
    finder = _Finder(path, source.split("\n"))
    finder.visit(ast.parse(source))
    return sorted(finder.found)


def read_mutants(root: Path, folders: Iterable[Path]) -> list[Mutant]:
    files = sorted(file for folder in folders for file in folder.rglob("*.py"))
    return [
        mutant
        for file in files
        for mutant in find_mutants(file.relative_to(root).as_posix(), file.read_text(encoding="utf-8"))
    ]


def add_probes(source: str, lines: Iterable[int]) -> str:
    """The source with a probe before the statement of each line, so that a test run can tell who runs it.

    A probe calls `mutation_probe` of `builtins` with the line, or nothing where nobody has put it there.
    """
    before: defaultdict[int, list[int]] = defaultdict(list)
    statements = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)]
    text = source.split("\n")
    for line in sorted(set(lines)):
        around = [node.lineno for node in statements if node.lineno <= line <= (node.end_lineno or line)]
        # Nothing can stand before an `elif`; it belongs to the statement around it.
        starts = [start for start in around if not text[start - 1].lstrip().startswith("elif")]
        before[max(starts)].append(line)
    probed: list[str] = []
    for number, content in enumerate(text, 1):
        indent = content[: len(content) - len(content.lstrip())]
        probed += [f"{indent}{PROBE.format(line)}" for line in before[number]]
        probed.append(content)
    return "\n".join(probed)


@dataclass
class _Finder(ast.NodeVisitor):
    """Visits the functions of a module, and adds what can be changed in them."""

    path: str
    lines: list[str]
    found: set[Mutant] = field(default_factory=set[Mutant])
    depth: int = 0
    """Of the functions around the node."""
    is_cached: bool = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_function(node)

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        before = self.is_cached
        self.is_cached = before or any(_name(part) in CACHES for part in node.decorator_list)
        self.depth += 1
        for statement in node.body:
            self.visit(statement)
        self.depth -= 1
        self.is_cached = before

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) or _name(node.value) == "assert_never":
            return
        self._replace("drop statement", node, "pass")
        self._replace("return early", node, "return")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if isinstance(node.targets[0], ast.Attribute | ast.Subscript):
            self._replace("drop statement", node, "pass")
        self._replace("return early", node, "return")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._replace("drop statement", node, "pass")
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Delete(self, node: ast.Delete) -> None:
        self._replace("drop statement", node, "pass")

    def visit_Raise(self, node: ast.Raise) -> None:
        self._replace("drop statement", node, "pass")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        match node.value:
            case None | ast.Constant(value=None):
                return
            case ast.Constant(value=bool() as value):
                self._replace("return otherwise", node.value, str(not value))
            case value:
                self._replace("return None", value, "None")
                self.visit(value)

    def visit_If(self, node: ast.If) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._negate(test)
        self.generic_visit(node)

    def _negate(self, test: ast.expr) -> None:
        if not isinstance(test, ast.Constant):
            self._replace("negate condition", test, f"(not ({self._text(test)}))")

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._replace_between("swap and/or", left, right, old, new)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for left, operator, right in zip(sides, node.ops, node.comparators, strict=False):
            self._replace_between("swap comparison", left, right, *COMPARISONS[type(operator)])
            elements = right.elts if isinstance(right, ast.Tuple | ast.Set | ast.List) else [right]
            for side in (left, *elements):
                self._change_string(side)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._change_string(node.slice)
        self.generic_visit(node)

    def visit_MatchValue(self, node: ast.MatchValue) -> None:
        self._change_string(node.value)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = _name(node)
        if isinstance(node.func, ast.Attribute) and name in LOOKUPS and node.args:
            self._change_string(node.args[0])
        self.visit(node.func)
        for argument in node.args[1:] if name in TYPE_CALLS else node.args:
            self.visit(argument)
        for keyword in node.keywords:
            self.visit(keyword.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Text for people; the places of its parts are not reliable either."""

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, int) and not isinstance(node.value, bool):
            self._replace("off by one", node, str(node.value + 1))

    def _change_string(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self._replace("change string", node, repr(f"{node.value}x"))

    def _replace_between(self, operator: str, left: ast.expr, right: ast.expr, old: str, new: str) -> None:
        """Change the operator between two expressions, if all of it stands on one line."""
        if left.end_lineno is None or left.end_lineno != right.lineno:
            return
        start, end = left.end_col_offset or 0, right.col_offset
        between = self.lines[right.lineno - 1].encode()[start:end].decode()
        if between.count(old) == 1:
            self._add(operator, right.lineno, start, end, between.replace(old, new))

    def _replace(self, operator: str, node: ast.expr | ast.stmt, text: str) -> None:
        if node.lineno == node.end_lineno and node.end_col_offset is not None:
            self._add(operator, node.lineno, node.col_offset, node.end_col_offset, text)

    def _text(self, node: ast.expr) -> str:
        return self.lines[node.lineno - 1].encode()[node.col_offset : node.end_col_offset].decode()

    def _add(self, operator: str, line: int, start: int, end: int, text: str) -> None:
        original = self.lines[line - 1]
        data = original.encode()
        mutated = (data[:start] + text.encode() + data[end:]).decode()
        if self.depth and mutated != original:
            self.found.add(Mutant(self.path, line, operator, original, mutated, self.is_cached))


def _name(node: ast.expr) -> str:
    """What is called or named, without what stands before its last dot."""
    match node:
        case ast.Call(func=called):
            return _name(called)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""
