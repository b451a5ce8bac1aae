"""One session's requests through the cache model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import accumulate, pairwise

from cache_sessions import Request, Session, Turn, cleared
from cache_sizes import FRAME, Sizes

from sevenfold.core.cache.prompt_blocks import THINKING_TYPES
from sevenfold.core.cache.prompt_cache import (
    DEFAULT_CACHE_CHOICES,
    FIVE_MINUTES,
    ONE_HOUR,
    CacheChoices,
    CacheScope,
    PromptBill,
    PromptCache,
    PromptLevel,
    PromptPart,
    RenderedPrompt,
    find_first_difference,
    render_prompt,
)
from sevenfold.core.json import JsonObject
from sevenfold.core.prices import CATALOG
from sevenfold.core.usage import Usage

BREAK_TOKENS = 1_000
"""A call that reads this much less than the prompt before it held is a break."""
LOST_SHARE = 0.05
"""A prompt that is this much shorter than its messages was cleared, though no log says so."""
SCOPE = CacheScope("bench")
TRAILER_TOKENS = 40
"""What is fresh up to here is what comes after the last block of any prompt, and is never cached."""
USUAL_TRAILER_TOKENS = 8
KEPT_RESULTS = 3
"""The newest tool results, which nobody clears."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One logged call: as billed, as foretold, and by the rule."""

    session: str
    number: int
    pause: timedelta
    total: int
    previous: int
    logged: int
    ours: int
    rule: int
    opens_turn: bool
    """A person spoke, and while the cache was alive."""
    cause: str
    """Why our read falls short of the previous prompt; empty when it does not."""

    @property
    def is_break(self) -> bool:
        return self.falls_short(self.logged)

    def falls_short(self, read: int) -> bool:
        return min(self.previous, self.total) - read >= BREAK_TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A request as it went out, and its bill."""

    request: Request
    prompt: RenderedPrompt
    bill: PromptBill
    ttl: timedelta
    was_cleared: bool
    """It is so much shorter than its messages that some of them must have been cleared."""


class Simulation:
    """One session: its cache, and what its blocks weigh.

    `is_bare` leaves out what bills and later calls tell of the requests: where the last marker stood, by the
    tokens that were fresh, and the requests that are in no log.
    """

    def __init__(
        self, session: Session, choices: CacheChoices = DEFAULT_CACHE_CHOICES, *, is_bare: bool = False
    ) -> None:
        self._session = session
        self._is_bare = is_bare
        self._choices = choices
        self._cache = PromptCache(choices)
        self._sizes = Sizes()
        self._swapped: dict[int, JsonObject] = {}
        self._latest: RenderedPrompt | None = None
        self._model = ""
        self._ttl = FIVE_MINUTES

    def calls(self) -> list[Call]:
        """Every logged call but the first."""
        requests = self._session.requests(with_unlogged=not self._is_bare)
        logged = [sent for request in requests if (sent := self._send(request)).request.usage]
        pairs = enumerate(pairwise(logged), start=2)
        return [_call(self._session.name, number, before, sent) for number, (before, sent) in pairs]

    def _send(self, request: Request) -> Sent:
        prompt, was_cleared = self._render(request), False
        if request.usage is not None:
            cached = request.usage.prompt - (0 if self._is_bare else _trailer(request.usage))
            was_cleared = self._clear_what_must_be(request, prompt, cached)
            prompt = self._render(request) if was_cleared else prompt
            self._sizes.settle([block.wire for block in prompt.blocks], cached)
            self._ttl = _lifetime(request.usage, self._ttl)
        parts = self._parts(prompt, request)
        bill = self._cache.look_up(SCOPE, CATALOG.find(request.model), parts, request.started)
        self._cache.begin_response(bill, request.started)
        return Sent(request=request, prompt=prompt, bill=bill, ttl=self._ttl, was_cleared=was_cleared)

    def _render(self, request: Request) -> RenderedPrompt:
        view = [replace(turn, blocks=tuple(map(self._shown, turn.blocks))) for turn in request.view]
        self._latest = render_prompt(
            body(request.model, view), _uncounted, choices=self._choices, after=self._latest
        )
        return self._latest

    def _shown(self, block: JsonObject) -> JsonObject:
        return self._swapped.get(id(block), block)

    def _clear_what_must_be(self, request: Request, prompt: RenderedPrompt, billed: int) -> bool:
        """Swap the oldest tool results for a placeholder until the prompt is as short as it was billed."""
        lost = self._sizes.shortfall([block.wire for block in prompt.blocks], billed)
        is_new = "compaction" in request.cuts or request.model != self._model
        self._model = request.model
        if is_new or lost < LOST_SHARE * billed:
            return False
        blocks = [block for turn in request.view for block in turn.blocks if id(block) not in self._swapped]
        results = [block for block in blocks if block.get("type") == "tool_result"]
        for block in results[:-KEPT_RESULTS]:
            if lost <= 0:
                break
            lost -= self._sizes.of(block)
            self._swapped[id(block)] = cleared(block)
        return True

    def _parts(self, prompt: RenderedPrompt, request: Request) -> list[PromptPart]:
        """With sizes, and with markers where Claude Code puts them: on the system prompt and at the end."""
        marked = {0, self._last_marker(prompt, request)}
        return [
            replace(part, tokens=self._sizes.of(block.wire), ttl=self._ttl if index in marked else None)
            for index, (part, block) in enumerate(zip(prompt.parts, prompt.blocks, strict=True))
        ]

    def _last_marker(self, prompt: RenderedPrompt, request: Request) -> int:
        """The last block; or, of results that came in one message, the one after which as much was billed
        fresh: Claude Code marks the result that came last and sends them in the order of their requests."""
        blocks = prompt.blocks
        own = [
            i
            for i, block in enumerate(blocks)
            if block.turn < request.shared and block.kind not in THINKING_TYPES
        ]
        last = own[-1]
        if self._is_bare or request.usage is None or request.usage.fresh <= TRAILER_TOKENS:
            return last
        together = [i for i in own if blocks[i].turn == blocks[last].turn]
        after = accumulate(self._sizes.of(blocks[i].wire) for i in reversed(together))
        behind = dict(zip(reversed(together), (0, *after), strict=False))
        fresh = request.usage.fresh - USUAL_TRAILER_TOKENS
        return min(behind, key=lambda index: abs(behind[index] - fresh))


def body(model: str, view: Iterable[Turn]) -> JsonObject:
    messages = tuple(JsonObject({"role": turn.role, "content": turn.blocks}) for turn in view)
    return JsonObject({"model": model, "system": (FRAME,), "messages": messages})


def _uncounted(_level: PromptLevel, _block: JsonObject) -> int:
    return 0


def _trailer(usage: Usage) -> int:
    return usage.fresh if usage.fresh <= TRAILER_TOKENS else USUAL_TRAILER_TOKENS


def _lifetime(usage: Usage, known: timedelta) -> timedelta:
    """What the call's markers asked for, as far as its writes tell."""
    if usage.written_1h:
        return ONE_HOUR
    return FIVE_MINUTES if usage.written_5m else known


def _call(session: str, number: int, before: Sent, sent: Sent) -> Call:
    usage, previous = sent.request.usage, before.request.usage
    assert usage is not None
    assert previous is not None
    pause = sent.request.started - before.request.started
    is_late = pause > before.ttl
    call = Call(
        session=session,
        number=number,
        pause=pause,
        total=usage.prompt,
        previous=previous.prompt,
        logged=usage.read,
        ours=sent.bill.read,
        rule=0 if is_late else min(previous.prompt, usage.prompt),
        opens_turn=not is_late and not sent.request.cuts and sent.request.has_spoken,
        cause="",
    )
    is_short = bool(sent.request.cuts) or call.falls_short(call.ours)
    return replace(call, cause=_cause(before, sent)) if is_short else call


def _cause(before: Sent, sent: Sent) -> str:
    """Why the model reads less than the previous prompt."""
    for cut in sorted(sent.request.cuts):
        return cut
    if sent.request.model != before.request.model:
        return "model switch"
    if sent.bill.expired is not None:
        return "idle beyond TTL"
    if sent.was_cleared:
        return "clearing, not logged"
    if find_first_difference(before.prompt, sent.prompt) is not None:
        return "thinking dropped"
    return "marker before the end" if before.bill.fresh else "look-back"
