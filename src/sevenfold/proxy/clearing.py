"""Old results and long conversations under the proxy: when to clear and when to compact, by price.

Both are decided from the messages of the request and from what is on disk of earlier requests, so that a
restarted proxy decides the same. An agent must not cost noticeably more than without the proxy: a cut is made
only where little is lost if the session ends with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message, Text, ToolResult, ToolUse, ToolUseId
from sevenfold.core.models import Model
from sevenfold.core.requests import Capabilities, RequestParams, ViewMessage
from sevenfold.core.settings import Settings
from sevenfold.core.tokens import (
    Tally,
    Thresholds,
    WindowFacts,
    WindowSettings,
    choose_window,
    plan_thresholds,
)
from sevenfold.core.tokens.estimation import estimate_text_tokens
from sevenfold.core.tool_kinds import ClearableTools
from sevenfold.layers.compaction.policy import CompactSettings
from sevenfold.layers.compaction.summary import SummaryHead, render_summary_head
from sevenfold.layers.compaction.trim import choose_kept_start, split_rounds
from sevenfold.layers.microcompact.facts import (
    DEFAULT_CACHE_PRICES,
    CachePrices,
    ClearingCost,
    ClearingFacts,
    ClearingPlan,
    MicrocompactSettings,
    ResultPosition,
    compute_cache_prices,
    is_cache_cold,
)
from sevenfold.layers.microcompact.policy import choose_by_price, choose_prefix_by_price
from sevenfold.layers.microcompact.result_account import ResultAccount
from sevenfold.layers.microcompact.server_clearing import (
    ServerClearing,
    ServerEditSettings,
    share_weight,
    takes_our_edit,
    uses_server_edits,
)
from sevenfold.layers.session_notes.policy import NotesSettings
from sevenfold.layers.session_notes.structural_notes import StructuralNotes
from sevenfold.layers.templates import read_notes_texts
from sevenfold.proxy.bodies import RequestBody
from sevenfold.proxy.state import ConversationState, Decisions, SeenRequest

MAX_LOSS_SHARE = 0.1
"""Of what prompts have cost so far: a clearing may lose so much if nothing comes after it.

Four scripted sessions of 54 rounds that end with 80,000 to 240,000 tokens, with signed thinking and without:
0.05 saves 0, 0, 14 and 32% of the bill, 0.1 saves 11, 14, 28 and 40%, and without a bound it is 17, 14, 28
and 43%. Ended at the worst moment, one of them costs 1.6%, 5.5% and 8.8% more than with no clearing."""

NEAR_BLOCKS = 18
"""The provider looks 20 blocks back; what the layers add counts too."""

KEPT_SHARE = 4
"""Of the window, this part may go to the newest rounds after a compaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearingInputs:
    """What the account of a conversation depends on beside its messages."""

    model: Model
    model_name: str
    capabilities: Capabilities
    settings: Settings
    params: JsonObject
    """Fields of the request, of which the edits of the client count."""
    betas: tuple[str, ...]
    ttl: timedelta
    is_automatic_cache: bool
    """Whether the provider finds any beginning in its cache, without breakpoints."""

    @property
    def clears_there(self) -> bool:
        """Whether the provider clears: old turns of a signed model must not be rewritten here."""
        edits = self.settings.of(ServerEditSettings)
        can = uses_server_edits(self.capabilities, edits) and self.model.is_known
        return can and takes_our_edit(self.params)

    @property
    def thresholds(self) -> Thresholds:
        window, compact = self.settings.of(WindowSettings), self.settings.of(CompactSettings)
        tokens = choose_window(self.model_name, self.model, self.betas, window)
        facts = WindowFacts(
            tokens, self.model.max_output_tokens, compact.is_automatic, compact.auto_compact_pct
        )
        return plan_thresholds(facts, window)


@dataclass(slots=True, kw_only=True)
class ClearingAccount:
    """The clearable results of a conversation, what they weigh, and what clearing has saved."""

    inputs: ClearingInputs
    results: ResultAccount = field(init=False)
    server: ServerClearing = field(init=False)
    tally: Tally = field(init=False)
    keys: dict[ToolUseId, str] = field(default_factory=dict[ToolUseId, str])
    """By tool use: under which its result is filed."""
    weights: list[float] = field(default_factory=list[float])
    """One a message, those before `start` too."""
    is_ambiguous: bool = False
    """A tool use has two results: nothing is cleared then."""
    start: int = 0
    """The first message behind a compaction."""
    _sizes: dict[ToolUseId, float] = field(default_factory=dict[ToolUseId, float])
    _tools: dict[ToolUseId, ToolUse] = field(default_factory=dict[ToolUseId, ToolUse])
    _applied: int = 0
    _answered: int = 0
    """So many requests on record were taken in: what was decided for them, and their answers."""
    _rounds: int = 0
    _edges: dict[ToolUseId, int] = field(default_factory=dict[ToolUseId, int])
    """Blocks that the request had which came before the round of a tool use."""
    _blocks: int = 0
    _last_blocks: int = 0
    _last: SeenRequest | None = None
    _last_tokens: int = 0

    def __post_init__(self) -> None:
        settings = self.inputs.settings.of(MicrocompactSettings)
        clearable = ClearableTools(never=settings.never_clear, named=settings.clearable, declared={})
        self.results = ResultAccount(settings=settings, is_clearable=lambda use: clearable.allows(use.name))
        self.server = ServerClearing(
            settings=self.inputs.settings.of(ServerEditSettings), is_clearable=clearable.allows
        )
        self.tally = Tally(self.inputs.model)

    @property
    def tokens(self) -> int:
        return self.tally.count().tokens

    @property
    def cleared_tokens(self) -> int:
        """What the provider leaves out of this request."""
        return sum(self.tally.estimate_of(self._sizes.get(use, 0.0)) for use in self.server.cleared)

    @property
    def needs_compaction(self) -> bool:
        """Whether the window is nearly full, and may be emptied without a question."""
        limits = self.inputs.thresholds
        return limits.is_automatic and self.tokens >= limits.auto_compact

    def catch_up(
        self, state: ConversationState, keys: Sequence[str], messages: Sequence[Message], *, in_flight: bool
    ) -> None:
        """Take in the requests on record, then what this one adds. `messages`: as they are sent, but for what
        is cleared; `in_flight`: the last one on record is not answered yet."""
        for at in range(self._answered, len(state.requests)):
            request = state.requests[at]
            self._add(keys, messages, min(request.messages, len(messages)))
            if at >= self._applied:
                self._apply(state.steps[at])
                self._applied = at + 1
            if not in_flight or at + 1 < len(state.requests):
                self._answer(request)
                self._answered = at + 1
        self._add(keys, messages, len(messages))

    def skip_to(self, state: ConversationState, start: int) -> None:
        """Begin behind a compaction: what was before it is in no request any more."""
        self.start = start
        self.weights = [0.0] * start
        self.tally.add(Message("user", state.head), "attachment")
        at = max((index for index, step in enumerate(state.steps) if step.boundary), default=0)
        self._applied = self._answered = self._rounds = at

    def choose(self, now: datetime) -> ClearingPlan | None:
        """What to clear before this request; None: nothing."""
        if self.is_ambiguous or not (self.inputs.clears_there or self.inputs.capabilities.rewrites_history):
            return None
        if self._last is None:
            return None  # the first request: nothing of it was sent before
        facts = self._facts(now)
        self.results.prices = facts.prices
        if facts.is_cold:
            self.results.results.reset_anchors()
        if not self.inputs.is_automatic_cache:
            self._set_anchors()
        rule = choose_prefix_by_price if self.inputs.clears_there else choose_by_price
        plan = self.results.choose(facts, rule)
        return plan if plan is None or self._can_afford(plan, facts) else None

    def _set_anchors(self) -> None:
        """Up to where the cache can be read if a result goes: the provider looks for what earlier requests
        left in it a few blocks back from the last breakpoint. Further back there are the client's alone."""
        results = self.results.results
        results.live = [
            replace(item, anchor=item.edge if self._is_near(item.result.id) else 0) for item in results.live
        ]

    def _is_near(self, use: ToolUseId) -> bool:
        return self._blocks - self._edges.get(use, 0) <= NEAR_BLOCKS

    def _can_afford(self, plan: ClearingPlan, facts: ClearingFacts) -> bool:
        """Whether the session would cost hardly more than without any clearing if it ended now. Near the end
        of the window there is no choice."""
        if facts.view_tokens > facts.warning_tokens:
            return True
        ledger, prices = self.results.ledger, facts.prices
        cost = (prices.write - prices.read) * plan.rewrite_tokens
        return cost <= max(0.0, ledger.net_saved) + MAX_LOSS_SHARE * ledger.kept_cost

    def _add(self, keys: Sequence[str], messages: Sequence[Message], end: int) -> None:
        for at in range(len(self.weights), end):
            message = messages[at]
            place = self.tokens
            weight = self.tally.add(message)
            self.weights.append(weight)
            self.server.add(message, weight)
            for block in message.blocks:
                if isinstance(block, ToolUse):
                    self._tools[block.id] = block
                elif isinstance(block, ToolResult):
                    self.is_ambiguous = self.is_ambiguous or block.tool_use_id in self.keys
                    self.keys[block.tool_use_id] = f"{keys[at]}/{block.tool_use_id}"
                    self._edges[block.tool_use_id] = self._last_blocks
            self._sizes |= {result.tool_use_id: share for result, share in share_weight(message, weight)}
            if message.role == "user":
                self.results.add(
                    ViewMessage(message, weight),
                    self._tools,
                    ResultPosition(self._rounds, place, self._last_tokens),
                    self.tally.estimate_of,
                )
            self._blocks += len(message.blocks)

    def _apply(self, step: Decisions) -> None:
        cost = ClearingCost(step.saved_tokens, step.rewrite_tokens)
        if step.cleared:
            ids = [ToolUseId(key.partition("/")[2]) for key in step.cleared]
            self.tally.discount(self._weigh(ids))
            self.results.cut(cost, ids)
        if step.depth:
            found = self.server.restore(step.depth, step.excluded)
            if found is not None:
                self.tally.discount(found.weight)
                self.results.cut(cost, found.ids)

    def _weigh(self, ids: Sequence[ToolUseId]) -> float:
        return sum(self._sizes.get(use, 0.0) for use in ids)

    def _answer(self, request: SeenRequest) -> None:
        tokens = request.tokens or self.tokens
        idle = request.started - self._last.started if self._last else None
        if request.tokens:
            self.tally.set_baseline(request.tokens)
        self.results.sent(tokens, request.started, is_cold=is_cache_cold(idle, self.inputs.ttl))
        self._last, self._last_tokens, self._last_blocks = request, tokens, self._blocks
        self._rounds += 1

    def _facts(self, now: datetime) -> ClearingFacts:
        tokens, ttl, automatic = self.tokens, self.inputs.ttl, self.inputs.is_automatic_cache
        started = self._last.started if self._last else None
        return ClearingFacts(
            now=now,
            last_request=started,
            last_answer=started,
            ttl=ttl,
            prices=self._find_prices(now, tokens),
            view_tokens=tokens,
            cached_tokens=self._last_tokens,
            round=self._rounds,
            warning_tokens=self.inputs.thresholds.warning,
            live_tokens=self.results.live_tokens(now, ttl) if automatic else 0,
            marked_tokens=self.results.marked_tokens if automatic else 0,
        )

    def _find_prices(self, now: datetime, tokens: int) -> CachePrices:
        tariff = self.inputs.model.prices_at(now)
        return (
            compute_cache_prices(tariff.for_prompt(tokens), self.inputs.ttl)
            if tariff
            else DEFAULT_CACHE_PRICES
        )

    # The provider's side.

    def make_edits(self) -> RequestParams:
        """The fields and betas that tell the provider what to clear."""
        return self.server.apply(RequestParams(model="", max_tokens=0, params=self.inputs.params))


def open_account(
    inputs: ClearingInputs,
    state: ConversationState,
    body: RequestBody,
    messages: Sequence[Message],
    *,
    in_flight: bool,
) -> ClearingAccount:
    """The account of a conversation, up to this request: the one in memory, or made again from its state."""
    found, keys = state.extra.get("account"), body.keys
    key = (inputs.model_name, inputs.params, state.boundary)
    if not isinstance(found, ClearingAccount) or state.extra.get("account key") != key:
        found = ClearingAccount(inputs=inputs)
        found.tally.set_frame(body.system_text, body.tools)
        state.extra["account"], state.extra["account key"] = found, key
        if state.boundary in keys:
            found.skip_to(state, keys.index(state.boundary) + 1)
    found.catch_up(state, keys, messages, in_flight=in_flight)
    return found


def find_stand_ins(state: ConversationState) -> dict[str, str]:
    """What stands in for results since before the account began."""
    later = {key for step in state.steps for key in step.cleared}
    return {**state.results, **{key: text for key, text in state.cleared.items() if key not in later}}


def show_sent(messages: Sequence[Message], keys: Sequence[str], results: Mapping[str, str]) -> list[Message]:
    """The messages with previews in place of stored results, as they are sent."""
    if not results:
        return list(messages)
    replaced = {name.partition("/")[0] for name in results}
    return [
        _with_previews(message, key, results) if key in replaced else message
        for message, key in zip(messages, keys, strict=True)
    ]


def _with_previews(message: Message, key: str, results: Mapping[str, str]) -> Message:
    blocks = tuple(
        replace(block, content=results[name])
        if isinstance(block, ToolResult) and (name := f"{key}/{block.tool_use_id}") in results
        else block
        for block in message.blocks
    )
    return replace(message, content=blocks)


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """Messages that give way to a text."""

    last: int
    """The last of them."""
    head: str
    saved_tokens: int


def plan_compaction(
    account: ClearingAccount, messages: Sequence[Message], settings: Settings
) -> CompactionPlan | None:
    """The notes that a conversation gives by itself in place of its older messages; None: they save nothing.

    `messages` are all of the conversation, with nothing in the user's but what a person said.
    """
    limits = account.inputs.thresholds
    counts = [account.tally.estimate_of(weight) for weight in account.weights]
    start = account.start
    rounds = split_rounds(messages[start:], counts[start:])
    kept = choose_kept_start(rounds, limits.effective // KEPT_SHARE, length=len(messages) - start)
    kept = start + min(kept, rounds[-1].start)
    if kept <= start:
        return None
    notes = StructuralNotes()
    for message in messages[:kept]:
        notes.add(message)
    text = notes.render(settings.of(NotesSettings), read_notes_texts().template)
    opening = render_summary_head(SummaryHead(strategy="structural", summary=text))
    head = "\n\n".join(block.text for block in opening.blocks if isinstance(block, Text))
    saved = sum(counts[start:kept]) - round(estimate_text_tokens(head))
    return CompactionPlan(kept - 1, head, saved) if saved > 0 else None
