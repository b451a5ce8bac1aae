"""A report without what is private in it: paths, names of projects and files, commands and prompts.

What stays: figures, times, agents and their versions, models that a public list names, and tools that come
with a known agent. Everything else gets a number, the same for the same thing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from sevenfold.core.events import Event, ModelUnknown, PriceUnknown
from sevenfold.core.models import MODELS
from sevenfold.core.price_list import read_price_list
from sevenfold.core.prices import CATALOG
from sevenfold.core.tool_kinds import MCP_PREFIX, find_tool
from sevenfold.replay.bills import ROW_REMARKS, UNNAMED_MODEL, CostlyResult, ModelBill
from sevenfold.replay.context_fill import ContextFill
from sevenfold.replay.report import ReplayReport, SessionReport

_PUBLIC = frozenset(model.name for model in MODELS)
_VERSION = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6}){0,3}")


class _Names:
    """Numbers in the place of names."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}
        self._counts: Counter[str] = Counter()

    def hide(self, kind: str, name: str) -> str:
        if not name:
            return ""
        if (kind, name) not in self._known:
            self._counts[kind] += 1
            self._known[kind, name] = f"{kind}-{self._counts[kind]}"
        return self._known[kind, name]

    def tool(self, name: str) -> str:
        if not name or find_tool(name):
            return name
        return self.hide("mcp" if name.startswith(MCP_PREFIX) else "tool", name)

    def model(self, name: str) -> str:
        """A public name stays, without what a gateway puts around it: that may be an account."""
        remark = next((one for one in ROW_REMARKS if name.endswith(one)), "")
        plain = name.removesuffix(remark)
        found = CATALOG.find(plain).name
        is_public = found in _PUBLIC or found in read_price_list().tariffs
        shown = found if is_public else self.hide("model", plain)
        return name if name == UNNAMED_MODEL else shown + remark


def anonymize_report(report: ReplayReport) -> ReplayReport:
    """The same figures without paths, names, commands and prompts."""
    names = _Names()
    sessions = tuple(_session(item, names) for item in report.sessions)
    return replace(
        report,
        is_anonymous=True,
        sessions=sessions,
        bills=tuple(_bill(item, names) for item in report.bills),
        fill=_fill(report.fill, names),
        costly_results=tuple(_result(item, names) for item in report.costly_results),
        repeated_reads=tuple(
            replace(item, path=names.hide("file", item.path)) for item in report.repeated_reads
        ),
        lines=replace(
            report.lines,
            unknown=_count_all(report.lines.unknown, "types"),
            faults=_count_all(report.lines.faults, "lines"),
        ),
        repriced=report.repriced and names.model(report.repriced),
        unreadable=tuple(
            replace(item, path=Path(names.hide("transcript", str(item.path))), reason="it could not be read")
            for item in report.unreadable
        ),
        events=tuple(_event(item, names.model) for item in report.events),
    )


def _count_all(counts: Mapping[str, int], what: str) -> dict[str, int]:
    return {f"({what})": sum(counts.values())} if counts else {}


def _session(session: SessionReport, names: _Names) -> SessionReport:
    return replace(
        session,
        id=names.hide("s", session.id),
        sub_agent=names.hide("a", session.sub_agent or "") or None,
        title="",
        path=Path(names.hide("transcript", str(session.path))),
        project=names.hide("project", session.project),
        version=session.version if _VERSION.fullmatch(session.version) else "",
        bills=tuple(_bill(item, names) for item in session.bills),
        days=tuple(replace(item, bill=_bill(item.bill, names)) for item in session.days),
        servers=tuple(replace(item, server=names.hide("server", item.server)) for item in session.servers),
        breaks=tuple(replace(item, model=names.model(item.model)) for item in session.breaks),
        fill=_fill(session.fill, names),
        repeated_reads=tuple(
            replace(item, path=names.hide("file", item.path)) for item in session.repeated_reads
        ),
        costly_results=tuple(_result(item, names) for item in session.costly_results),
    )


def _bill(bill: ModelBill, names: _Names) -> ModelBill:
    return replace(bill, model=names.model(bill.model))


def _fill(fill: ContextFill, names: _Names) -> ContextFill:
    return replace(fill, shares=tuple(replace(item, tool=names.tool(item.tool)) for item in fill.shares))


def _result(item: CostlyResult, names: _Names) -> CostlyResult:
    session, _, agent = item.session.partition("/")
    hidden = names.hide("s", session) + (f"/{names.hide('a', agent)}" if agent else "")
    return replace(item, session=hidden, tool=names.tool(item.tool), label="")


def _event(event: Event, hide: Callable[[str], str]) -> Event:
    return (
        replace(event, model=hide(event.model)) if isinstance(event, ModelUnknown | PriceUnknown) else event
    )
