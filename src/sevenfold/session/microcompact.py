"""Layer 2 in the view of a session: clears old tool results, by the means that the model allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sevenfold.core.events import ClearingRefused, ResultsCleared
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import ToolUseId
from sevenfold.core.requests import ModelResponse
from sevenfold.layers.microcompact.clearable_results import BARE_MARKER, render_cleared_marker
from sevenfold.layers.microcompact.policy import PRESSURE_TRIGGER, ClearingFacts
from sevenfold.layers.microcompact.policy import ClearingPlan as Chosen
from sevenfold.layers.microcompact.server_clearing import uses_server_edits
from sevenfold.session.memory import clear_oldest_memories, find_old_memories
from sevenfold.session.pipeline import ViewBuilder
from sevenfold.store.files.offload import run_blocking

NO_CACHE_EDITS = "no public provider deletes results inside a cached prefix"


@dataclass(slots=True)
class MicrocompactLayer:
    """The clearings of one conversation."""

    path: ViewBuilder
    _is_refused: bool = False
    _told: int = 0
    """How many results the provider said last that it cleared."""

    async def run(self) -> None:
        """Clear what is due, before a view is handed out."""
        path = self.path
        settings = path.around.settings.server_edits
        if settings.cache_edits and not self._is_refused:
            self._is_refused = True
            path.around.emit(ClearingRefused("server_edits.cache_edits", NO_CACHE_EDITS))
        if uses_server_edits(path.capabilities, settings):
            self._clear_deeper()
        elif path.capabilities.rewrites_history:
            await self._clear_here()

    def read_back(self, reply: ModelResponse) -> None:
        """Report what the provider says it cleared."""
        management = reply.extra.get("context_management")
        applied = management.get("applied_edits") if isinstance(management, JsonObject) else None
        for edit in applied if isinstance(applied, tuple) else ():
            results = _count(edit, "cleared_tool_uses")
            if results and results != self._told:
                self._told = results
                self.path.around.emit(
                    ResultsCleared("provider", results, _count(edit, "cleared_input_tokens"))
                )

    async def _clear_here(self) -> None:
        path = self.path
        facts = self._facts()
        path.local.prices = facts.prices
        if facts.is_cold:
            path.local.shelf.collapse()
        chosen = path.local.choose(facts)
        if chosen is None:
            return
        markers = await run_blocking(lambda: dict(self._markers(chosen)))
        path.local.forget(use for use in chosen.ids if use not in markers)
        if not markers:
            return
        stake = path.local.stake(chosen, markers)
        memories = self._clear_memories(markers) if chosen.by == PRESSURE_TRIGGER else ()
        path.clear(markers, chosen.reason, stake, memories)
        path.around.emit(ResultsCleared(chosen.by, len(markers), stake.saved_tokens, len(memories)))

    def _clear_memories(self, markers: Iterable[ToolUseId]) -> tuple[int, ...]:
        """Those that were recalled before the last result that goes."""
        places = (self.path.shown.place(use) for use in markers)
        last = max(place for place in places if place is not None)
        return clear_oldest_memories(self.path, len(find_old_memories(self.path, last)))

    def _facts(self) -> ClearingFacts:
        path = self.path
        tokens, now = path.tally.count().tokens, path.around.clock.now()
        prices = path.cache_prices(tokens)
        return ClearingFacts(
            now=now,
            last_request=path.last_request,
            last_answer=path.last_call,
            ttl=path.ttl,
            prices=prices,
            view_tokens=tokens,
            cached_tokens=path.sent_tokens,
            round=path.rounds,
            warning_tokens=path.window.thresholds.warning,
            live_tokens=path.local.live_tokens(now, path.ttl),
            marked_tokens=path.local.marked_tokens,
        )

    def _markers(self, chosen: Chosen) -> Iterator[tuple[ToolUseId, str]]:
        """What stands in for each chosen result, once its original is kept. Blocks on the disk."""
        path = self.path
        spills = path.around.spills
        for use in chosen.ids:
            result = path.shown.result(use)
            if result is None:
                continue
            where = None
            if spills is not None:
                decision = path.spilling.decisions.get(use)
                if decision is None or decision.spill is None:
                    decision = spills.store(result)
                where = spills.path_of(decision)
                if where is None:
                    continue  # it could not be stored, which was reported, so it stays
            yield use, BARE_MARKER if chosen.is_bare else render_cleared_marker(path.local.call(use), where)

    def _clear_deeper(self) -> None:
        path = self.path
        tokens = path.tally.count().tokens
        step = path.server.choose(tokens, path.window.thresholds.auto_compact, path.tally.estimate_of)
        if step is not None:
            path.clear_deeper(step)


def _count(value: object, key: str) -> int:
    count = value.get(key) if isinstance(value, JsonObject) else None
    return count if isinstance(count, int) and not isinstance(count, bool) else 0
