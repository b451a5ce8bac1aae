"""What a session through the proxy cost, as a person reads it, and the ledgers of earlier sessions.

`render_receipt` sums up the entries of a running proxy. `read_proxy_ledger` and `list_ledgers` read the files
that every proxy leaves, those of proxies that still run too: a line that is half written is not read yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from sevenfold.core.errors import StoreError, WireError
from sevenfold.core.json import Json, JsonObject, read_object
from sevenfold.core.models import Prices
from sevenfold.core.prices import CATALOG, Catalog, Cost, sum_costs
from sevenfold.core.system import is_process_alive
from sevenfold.core.usage import sum_usage
from sevenfold.proxy.ledger import ProxyEntry
from sevenfold.store.files.folder import Folder

MAX_LEDGER_BYTES = 256 * 1024 * 1024
MAX_SHOWN_BREAKS = 20
"""Of one receipt; an agent that breaks its prefix in every request would fill the screen."""

CLIENT_LEFT = 499
_MILLION = Decimal(1_000_000)


def render_receipt(entries: Sequence[ProxyEntry], catalog: Catalog = CATALOG) -> list[str]:
    """What the requests cost, what the layers did, and where the cache broke."""
    billed = [entry for entry in entries if entry.usage is not None]
    if not billed:
        none = (
            "no requests"
            if not entries
            else f"{_count(len(entries), 'request')}; no response reported its usage"
        )
        return [none, *_render_errors(entries)]
    usage = sum_usage(entry.usage for entry in billed if entry.usage is not None)
    cost = sum_costs(entry.cost for entry in billed)
    plain = sum_costs(entry.cost_without_caching for entry in billed)
    share = usage.read / usage.prompt if usage.prompt else 0.0
    conversations = len({entry.conversation for entry in billed})
    lines = [
        f"{_count(len(billed), 'model call')} in {_count(conversations, 'conversation')}, "
        f"{share:.1%} of {usage.prompt:,} prompt tokens from the cache",
        f"cost {_usd(cost)}; without caching {_usd(plain)}{_explain_more(cost, plain)}",
    ]
    by_purpose = dict.fromkeys(entry.facts.purpose for entry in billed)
    for purpose in by_purpose:
        of = [entry for entry in billed if entry.facts.purpose == purpose]
        lines.append(f"  {purpose:12} {len(of):>5}  {_usd(sum_costs(entry.cost for entry in of))}")
    lines += [*_render_layers(billed, catalog), *_render_breaks(billed)]
    silent = sum(
        entry.facts.is_model_call and entry.usage is None and entry.status < 400 for entry in entries
    )
    lines += (
        [f"{_count(silent, 'response')} without usage: the sums above leave out their cost"] if silent else []
    )
    return [*lines, *_render_errors(entries), *_render_failures(entries)]


def _explain_more(cost: Cost | None, plain: Cost | None) -> str:
    """Why a short session costs more with the cache than without."""
    is_more = cost is not None and plain is not None and cost.total > plain.total
    return (
        ": the first request pays for writing the cache, and later ones read it for less" if is_more else ""
    )


def _render_errors(entries: Iterable[ProxyEntry]) -> list[str]:
    """Requests that failed, by the reason."""
    counts: dict[tuple[str, str], int] = {}
    for entry in entries:
        if entry.status >= 400:
            said = _describe_error(entry)
            counts[said] = counts.get(said, 0) + 1
    return [f"{_count(count, 'request')} {verb}: {why}" for (verb, why), count in counts.items()]


def _describe_error(entry: ProxyEntry) -> tuple[str, str]:
    target = entry.target
    if target.error:
        return "failed", target.error
    if entry.status == CLIENT_LEFT:
        return "ended early", f"the agent closed {target} before the response"
    # An agent asks for what a server may not have, to see whether it is there.
    is_probe = entry.facts.wire == "other"
    return ("that asked no model got an error" if is_probe else "failed"), f"{target} answered {entry.status}"


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _render_layers(entries: Sequence[ProxyEntry], catalog: Catalog) -> list[str]:
    """What each layer left out or added, in tokens and about in dollars."""
    tokens: dict[str, int] = {}
    dollars: dict[str, Decimal] = {}
    added: dict[str, int] = {}
    for entry in entries:
        touch, prices = entry.touch, _find_prices(entry, catalog)
        for layer, saved in touch.saved.items():
            new = touch.newly_saved.get(layer, 0)
            tokens[layer] = tokens.get(layer, 0) + saved
            if prices is not None:
                worth = (new * prices.written_5m + (saved - new) * prices.read) / _MILLION
                dollars[layer] = dollars.get(layer, Decimal(0)) + worth
        for layer, count in touch.added.items():
            added[layer] = added.get(layer, 0) + count
    marked = sum("breakpoints" in entry.touch.acted for entry in entries)
    lines = [
        f"{layer}: {count:,} tokens not sent"
        + (f", about ${dollars[layer].quantize(Decimal('0.0001')):,} less" if layer in dollars else "")
        for layer, count in tokens.items()
    ]
    lines += [f"{layer}: {count:,} tokens added" for layer, count in added.items()]
    return [*lines, f"breakpoints: added to {_count(marked, 'request')}"] if marked else lines


def _find_prices(entry: ProxyEntry, catalog: Catalog) -> Prices | None:
    tariff = catalog.find(entry.facts.model).prices_at(entry.at)
    return tariff.for_prompt(entry.usage.prompt if entry.usage else 0) if tariff else None


def _render_breaks(entries: Sequence[ProxyEntry]) -> list[str]:
    broken = [entry for entry in entries if entry.cache_break is not None]
    lines = [
        f"{'cut' if lost.is_cut else 'cache break'} in {entry.conversation}: {lost.lost_tokens:,} tokens: "
        f"{lost.cause}"
        for entry in broken[:MAX_SHOWN_BREAKS]
        if (lost := entry.cache_break) is not None
    ]
    more = len(broken) - len(lines)
    return [*lines, f"{_count(more, 'more cache break')}: see the ledger"] if more else lines


def _render_failures(entries: Iterable[ProxyEntry]) -> list[str]:
    """Each once: a layer that fails mostly fails in every request."""
    counts: dict[str, int] = {}
    for entry in entries:
        for one in (*entry.touch.failures, *entry.touch.notes):
            counts[one] = counts.get(one, 0) + 1
    return [f"{one}{f' ({count} requests)' if count > 1 else ''}" for one, count in counts.items()]


def _usd(cost: Cost | None) -> str:
    return "unpriced" if cost is None else f"${cost.total.quantize(Decimal('0.0001')):,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSummary:
    """One session: everything that went through one proxy."""

    name: str
    """The file in the folder of ledgers."""
    is_live: bool
    """Whether its proxy still runs."""
    began: str
    ended: str
    agents: tuple[str, ...]
    conversations: int
    requests: int
    dollars: Decimal
    unbilled: int
    """Requests whose cost is unknown; of a proxy that runs, perhaps not yet."""
    saved_tokens: int
    breaks: int

    def to_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "is_live": self.is_live,
            "began": self.began,
            "ended": self.ended,
            "agents": list(self.agents),
            "conversations": self.conversations,
            "requests": self.requests,
            "dollars": str(self.dollars),
            "unbilled_requests": self.unbilled,
            "saved_tokens": self.saved_tokens,
            "breaks": self.breaks,
        }

    def render(self) -> str:
        state, who = "runs" if self.is_live else "ended", ", ".join(self.agents) or "unknown agent"
        unknown = f" and {_count(self.unbilled, 'request')} without a bill" if self.unbilled else ""
        return (
            f"{self.began[:16]}  {state:5}  {who}: {_count(self.requests, 'request')}, "
            f"{_count(self.conversations, 'conversation')}, ${self.dollars.quantize(Decimal('0.0001')):,}"
            f"{unknown}, {_count(self.breaks, 'cache break')}  {self.name}"
        )


def read_proxy_ledger(folder: Folder, name: str) -> list[JsonObject]:
    """The lines of a ledger, without one that is not written to its end yet. A request that was sent has one
    line: that of its answer, or, without one, that it was sent."""
    *lines, _ = folder.read(name, max_bytes=MAX_LEDGER_BYTES).split(b"\n")
    found: list[JsonObject] = []
    for line in lines:
        with suppress(WireError):
            found.append(read_object(line))
    answered = {number for line in found if (number := line.get("request")) is not None}
    return [line for line in found if line.get("sent") not in answered]


def render_ledger_line(line: JsonObject) -> str:
    """One request of a ledger, as a person reads it."""
    if "sent" in line:
        return f"{str(line.get('at'))[11:19]}  sent, and no answer was written down: its cost is unknown"
    who = f"{line.get('conversation') or '-'} {line.get('purpose')} {line.get('model') or ''}".rstrip()
    unread = sum(_read_count(line, name) for name in ("fresh", "written_5m", "written_1h"))
    tokens = f"{_read_count(line, 'read'):,} read, {unread:,} not" if "fresh" in line else "no usage"
    cost = f"  ${_read_dollars(line['dollars']).quantize(Decimal('0.0001')):,}" if "dollars" in line else ""
    layers, lost = line.get("layers"), line.get("break")
    acted = layers.get("acted") if isinstance(layers, JsonObject) else None
    done = f"  {', '.join(map(str, acted))}" if isinstance(acted, tuple) and acted else ""
    broken = f"  cache break: {lost.get('cause')}" if isinstance(lost, JsonObject) else ""
    return f"{str(line.get('at'))[11:19]}  {line.get('status')}  {who}: {tokens}{cost}{done}{broken}"


def list_ledgers(folder: Folder) -> list[LedgerSummary]:
    """All sessions, the newest first."""
    found: list[LedgerSummary] = []
    for name in sorted(folder.names(), reverse=True):
        if name.endswith(".jsonl"):
            with suppress(StoreError):
                lines = read_proxy_ledger(folder, name)
                found += [_summarize(name, lines)] if lines else []
    return found


def _summarize(name: str, lines: Sequence[JsonObject]) -> LedgerSummary:
    layers = [one for line in lines if isinstance(one := line.get("layers"), JsonObject)]
    saved = [one for layer in layers if isinstance(one := layer.get("saved"), JsonObject)]
    return LedgerSummary(
        name=name,
        is_live=_is_running(name.removesuffix(".jsonl").rpartition("-")[2]),
        began=str(lines[0].get("at") or ""),
        ended=str(lines[-1].get("at") or ""),
        agents=tuple(dict.fromkeys(str(agent) for line in lines if (agent := line.get("agent")))),
        conversations=len({line.get("conversation") for line in lines} - {None}),
        requests=len(lines),
        dollars=sum((_read_dollars(line.get("dollars")) for line in lines), Decimal(0)),
        unbilled=sum(map(_is_unbilled, lines)),
        saved_tokens=sum(count for one in saved for count in one.values() if isinstance(count, int)),
        breaks=sum("break" in line for line in lines),
    )


def _is_unbilled(line: JsonObject) -> bool:
    """Whether it cost something that nobody knows. What a server refused cost nothing."""
    is_silent = "request" in line and "fresh" not in line
    return "sent" in line or (is_silent and (_read_count(line, "status") < 400 or _was_left(line)))


def _was_left(line: JsonObject) -> bool:
    return line.get("status") == CLIENT_LEFT


def _read_count(line: JsonObject, name: str) -> int:
    value = line.get(name)
    return value if isinstance(value, int) else 0


def _read_dollars(value: Json) -> Decimal:
    try:
        return Decimal(str(value)) if value is not None else Decimal(0)
    except InvalidOperation:
        return Decimal(0)


def _is_running(pid: str) -> bool:
    return pid.isdecimal() and is_process_alive(int(pid))
