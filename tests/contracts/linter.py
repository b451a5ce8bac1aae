"""Kinds of contract that import-linter does not have. `pyproject.toml` says what they hold to.

All of them work on the graph of every import statement: at the top of a file, deferred in a function, or
under `TYPE_CHECKING`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class TableField(fields.Field[Mapping[str, frozenset[str]]]):
    """A TOML table of lists: library = packages."""

    def parse(self, raw_data: object) -> Mapping[str, frozenset[str]]:
        if not isinstance(raw_data, dict):
            raise fields.ValidationError("expected a table of lists: library = [packages]")
        rows = cast("dict[str, list[str]]", raw_data)
        return {library: frozenset(rooms) for library, rooms in rows.items()}


class Listing(Contract):
    """A contract whose breaches are lines of text."""

    def breaches(self, graph: ImportGraph) -> Iterator[str]:
        raise NotImplementedError

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        found = sorted(set(self.breaches(graph)))
        return ContractCheck(kept=not found, metadata={"breaches": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for line in cast("list[str]", check.metadata["breaches"]):
            output.print_error(f"- {line}", bold=False)


class Pure(Listing):
    """Policies of a package, which import values, other policies and nothing that acts."""

    package = fields.StringField()
    values = fields.SetField(subfield=fields.StringField())
    except_values = fields.SetField(subfield=fields.StringField())
    allowed = fields.SetField(subfield=fields.StringField())
    modules = fields.SetField(subfield=fields.StringField())

    def breaches(self, graph: ImportGraph) -> Iterator[str]:
        package, listed = cast("str", self.package), cast("set[str]", self.modules)
        yield from (f"{module} is listed and does not exist" for module in listed - graph.modules)
        policies = {module for module in _inside(graph, package) if is_policy(module) or module in listed}
        for importer in sorted(policies):
            for imported in graph.find_modules_directly_imported_by(importer):
                if imported not in policies and not self._may_import(imported):
                    yield _line(graph, importer, imported)

    def _may_import(self, imported: str) -> bool:
        if _root(imported) != _root(cast("str", self.package)):
            return _root(imported) in cast("set[str]", self.allowed)
        values, refused = cast("set[str]", self.values), cast("set[str]", self.except_values)
        return imported not in refused and any(f"{imported}.".startswith(f"{one}.") for one in values)


def is_policy(module: str) -> bool:
    """By its name alone: `policy`, or ending in `_policy`."""
    return module.rpartition(".")[2].endswith("policy")


class Outside(Listing):
    """Each library from outside is imported only by the packages of its row."""

    libraries = TableField()

    def breaches(self, graph: ImportGraph) -> Iterator[str]:
        table = cast("Mapping[str, frozenset[str]]", self.libraries)
        for root in cast("list[str]", self.session_options["root_packages"]):
            for importer in _inside(graph, root):
                room = importer.removeprefix(f"{root}.").partition(".")[0]
                for imported in graph.find_modules_directly_imported_by(importer):
                    library = _root(imported)
                    if library == root or library in sys.stdlib_module_names:
                        continue
                    if room not in table.get(library, frozenset()):
                        yield _line(graph, importer, imported)


class Acyclic(Listing):
    """No chain of imports comes back to where it began."""

    def breaches(self, graph: ImportGraph) -> Iterator[str]:
        for root in cast("list[str]", self.session_options["root_packages"]):
            for importer in _inside(graph, root):
                for imported in graph.find_modules_directly_imported_by(importer):
                    back = graph.find_shortest_chain(importer=imported, imported=importer)
                    if back:
                        yield _ring(back)


class Apart(Listing):
    """One package reaches none of some others, by however many steps."""

    importer = fields.StringField()
    never = fields.SetField(subfield=fields.StringField())

    def breaches(self, graph: ImportGraph) -> Iterator[str]:
        importer, never = cast("str", self.importer), cast("set[str]", self.never)
        for room in never & graph.modules if importer in graph.modules else ():
            for chain in graph.find_shortest_chains(importer=importer, imported=room, as_packages=True):
                yield " -> ".join(chain)


def _inside(graph: ImportGraph, package: str) -> Iterable[str]:
    return {package, *graph.find_descendants(package)} if package in graph.modules else ()


def _root(module: str) -> str:
    return module.partition(".")[0]


def _ring(chain: tuple[str, ...]) -> str:
    """A cycle told from its first module by name, so that each is told once."""
    start = chain.index(min(chain))
    return " -> ".join((*chain[start:], *chain[:start], chain[start]))


def _line(graph: ImportGraph, importer: str, imported: str) -> str:
    details = graph.get_import_details(importer=importer, imported=imported)
    return f"{importer} -> {imported} (line {', '.join(str(detail['line_number']) for detail in details)})"
