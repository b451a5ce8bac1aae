"""One main turn on its way through the layers: what is decided for its new messages, and what is sent.

Each request holds the whole conversation again, as the agent knows it. First new messages are looked at:
large results are stored, what a prompt recalls is added behind it, and old results are cleared where that
pays. What was decided is durable before it is sent. Then everything that was decided so far is applied to the
body, byte for byte as before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field, replace
from datetime import datetime

from sevenfold.core.errors import StoreError
from sevenfold.core.json import Json, thaw
from sevenfold.core.messages import Message, Text, ToolResult, ToolUse
from sevenfold.core.models import Model
from sevenfold.core.requests import MAX_BREAKPOINTS, Capabilities
from sevenfold.core.settings import Settings
from sevenfold.core.tokens.estimation import estimate_text_tokens
from sevenfold.core.tool_kinds import find_tool
from sevenfold.layers.microcompact.facts import (
    LONG_TTL,
    ClearingPlan,
    describe_clearable,
    render_cleared_marker,
)
from sevenfold.layers.microcompact.server_clearing import CONTEXT_MANAGEMENT_PARAM
from sevenfold.layers.tool_results.policy import FreshResult, ToolResultSettings, choose_spilled
from sevenfold.layers.tool_results.spill import SpillStore
from sevenfold.proxy.bodies import BodyMessage, RequestBody
from sevenfold.proxy.clearing import (
    ClearingAccount,
    ClearingInputs,
    find_stand_ins,
    open_account,
    plan_compaction,
    show_sent,
)
from sevenfold.proxy.ledger import DEFAULT_LIFETIME, RequestTouch
from sevenfold.proxy.machine_text import strip_machine_text
from sevenfold.proxy.memory import ProxyMemory, read_prompt
from sevenfold.proxy.profiles import AgentProfile, LayerName
from sevenfold.proxy.requests import RequestFacts
from sevenfold.proxy.state import STATE_LOST, ConversationState, Decisions, StateStore

CLIENT_CUT = "the client changed or compacted what it sent before"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    """A request of a run, as it came."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    client: str
    profile: AgentProfile
    project: str
    """The folder that the agent was started in."""
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTurn:
    """What is sent instead, and what was found out on the way."""

    body: bytes
    facts: RequestFacts
    touch: RequestTouch
    betas: tuple[str, ...] = ()
    """That the request needs beside those that it names."""
    state: ConversationState | None = None
    turn: TurnRequest | None = None


class LayerFailed(Exception):
    """A layer raised something."""

    def __init__(self, layer: str, error: BaseException) -> None:
        super().__init__(f"{layer}: {type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True)
class TurnTools:
    """What the turns of all conversations share."""

    store: StateStore
    memory: ProxyMemory
    submit: Callable[[Callable[[], str]], Future[str]]
    """Runs work in a thread of its own, so that a request need not wait for it."""
    memory_seconds: float
    """How long it waits."""


@dataclass(slots=True, kw_only=True)
class TurnWork:
    """One request on its way through the layers, under the lock of its conversation."""

    tools: TurnTools
    turn: TurnRequest
    facts: RequestFacts
    model: Model
    capabilities: Capabilities
    body: RequestBody
    state: ConversationState
    messages: list[Message] = field(default_factory=list[Message])
    decided: Decisions = field(default_factory=Decisions)
    failures: list[str] = field(default_factory=list[str])
    cuts: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    saved: dict[str, int] = field(default_factory=dict[str, int])
    newly_saved: dict[str, int] = field(default_factory=dict[str, int])
    added: dict[str, int] = field(default_factory=dict[str, int])
    betas: tuple[str, ...] = ()
    is_marked: bool = False
    _uses: dict[str, ToolUse] | None = None
    _settings: Settings | None = None
    _inputs: ClearingInputs | None = None

    def run(self) -> PreparedTurn:
        state, keys = self.state, self.body.keys
        before, common = state.keys, state.count_shared(keys)
        known = frozenset(before)
        fresh = [entry for entry in self.body.fresh if entry.key not in known]
        self._note_cuts(before, common)
        self._read_messages(common)
        if fresh:
            try:
                self._decide(fresh)
            except LayerFailed as failed:
                self.decided, self.added, self.newly_saved = Decisions(), {}, {}
                self.failures.append(str(failed))
        is_marked = self._choose_mark(before, common)
        self._record(common, is_marked=is_marked)
        state.messages = self.messages
        self._apply(is_marked=is_marked)
        return self._finish()

    def allows(self, layer: LayerName) -> bool:
        return layer in self.turn.profile.layers

    # What is known.

    def _note_cuts(self, before: tuple[str, ...], common: int) -> None:
        state = self.state
        has_past = any(entry.role == "model" for entry in self.body.entries)
        if state.is_damaged or (not before and has_past and not state.shared):
            self.cuts.append(STATE_LOST)
        elif common < len(before):
            self.cuts.append(CLIENT_CUT)
            self._try("recall", lambda: self.tools.memory.forget_shown(self.turn.project, state.name))

    def _read_messages(self, common: int) -> None:
        """The messages as values; those that were read for the request before are the same objects."""
        kept = self.state.messages[:common] if len(self.state.messages) == len(self.state.keys) else []
        rest = self.body.entries[len(kept) :]
        self.messages = kept + [self.body.read_message(one) for one in rest]
        places = (entry.at for entry in self.body.entries)
        self.body.parsed = dict(zip(places, self.messages, strict=True))

    @property
    def uses(self) -> dict[str, ToolUse]:
        if self._uses is None:
            blocks = (block for message in self.messages for block in message.blocks)
            self._uses = {block.id: block for block in blocks if isinstance(block, ToolUse)}
        return self._uses

    # New decisions.

    def _decide(self, fresh: list[BodyMessage]) -> None:
        if self.allows("spill"):
            self._attempt("spill", lambda: self._spill(fresh))
        if self.allows("recall"):
            self._attempt("recall", lambda: self._recall(fresh))
        if self.allows("rules"):
            self._attempt("rules", lambda: self._find_rules(fresh))
        if self.allows("clearing"):
            self._attempt("clearing", self._clear)
        if self.allows("compaction") and self.capabilities.rewrites_history and not self.decided.is_cut:
            self._attempt("compaction", self._compact)

    def _attempt(self, layer: str, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            raise LayerFailed(layer, error) from error

    def _try(self, layer: str, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self.failures.append(str(LayerFailed(layer, error)))

    def _spill(self, fresh: list[BodyMessage]) -> None:
        if not self._has_way_back():
            return
        settings = self.settings.of(ToolResultSettings)
        uses = self.uses
        found = {one.value.tool_use_id: one for one in self.body.results(fresh)}
        texts = [one for one in found.values() if _is_text(one.value)]
        named = [
            FreshResult(one.value, uses[use].name if (use := one.value.tool_use_id) in uses else "")
            for one in texts
        ]
        chosen = choose_spilled(named, settings)
        if not chosen:
            return
        spills = self._open_spills()
        try:
            for use in chosen:
                preview = spills.store(found[use].value).preview
                if preview is None:
                    self.failures.append(f"spill: the result of {use} could not be stored")
                    continue
                self.decided = replace(
                    self.decided, results={**self.decided.results, found[use].key: preview}
                )
        finally:
            spills.close()

    def _open_spills(self) -> SpillStore:
        # By what was said first, so that the same session has the same paths wherever it runs.
        return self.tools.memory.open_spills(self.turn.project, self.body.keys[0].partition(".")[0])

    def _has_way_back(self) -> bool:
        """Whether the agent can read a file by its path, or asks the MCP server for stored results."""
        for name in self.body.tool_names:
            kind = find_tool(name)
            if name.endswith("read_result") or (kind is not None and kind.effect in ("read", "run")):
                return True
        return False

    def _recall(self, fresh: list[BodyMessage]) -> None:
        at = self._find_tail(fresh)
        said = self.messages[len(self.messages) - len(self._behind(fresh)) :]
        prompt = read_prompt(strip_machine_text(said, self.turn.profile))
        if at is None or not prompt:
            return
        memory, project, name = self.tools.memory, self.turn.project, self.state.name
        text = self._ask_memory("recall", lambda late: memory.recall(project, name, prompt, late))
        self._add_text("recall", at, text)

    def _find_rules(self, fresh: list[BodyMessage]) -> None:
        at, uses = self._find_tail(fresh), self.uses
        called = [uses[use] for one in self.body.results(fresh) if (use := one.value.tool_use_id) in uses]
        if at is None or not called:
            return
        memory, project, name = self.tools.memory, self.turn.project, self.state.name
        text = self._ask_memory("rules", lambda late: memory.find_rules(project, name, called, late))
        self._add_text("rules", at, text)

    def _clear(self) -> None:
        """Clear old results where that pays: here, or on the provider's side."""
        if not self._has_way_back():
            return
        account = self._open_account()
        plan = account.choose(self.turn.at)
        if plan is None:
            return
        if account.inputs.clears_there:
            before, excluded = account.server.depth, account.server.excluded
            step = account.server.deepen(account.server.depth_at(plan.ids[-1]))
            depth, account.server.depth = account.server.depth, before  # until it is on record
            if step is None:
                return
            reach = account.keys[step.ids[-1]].partition("/")[0]
            self.decided = replace(self.decided, depth=depth, excluded=excluded, reach=reach)
        else:
            markers = self._make_markers(account, plan)
            if not markers:
                return
            self.decided = replace(self.decided, cleared=markers)
        self.decided = replace(
            self.decided, saved_tokens=plan.saved_tokens, rewrite_tokens=plan.rewrite_tokens
        )
        self.cuts.append(f"clearing: {plan.reason}")

    def _make_markers(self, account: ClearingAccount, plan: ClearingPlan) -> dict[str, str]:
        """What stands in for these results, once each is stored."""
        uses, markers = self.uses, dict[str, str]()
        found = {one.key: one for one in self.body.results(self.body.entries)}
        spills = self._open_spills()
        try:
            for use in plan.ids:
                key = account.keys[use]
                decision = spills.store(found[key].value) if key in found and use in uses else None
                where = spills.path_of(decision) if decision is not None else None
                if where is not None:
                    markers[key] = render_cleared_marker(describe_clearable(uses[use], 0), where)
        finally:
            spills.close()
        return markers

    def _compact(self) -> None:
        """Notes in place of older messages, for an agent that would run into the end of the window."""
        account = self._open_account()
        if not account.needs_compaction:
            return
        said = strip_machine_text(self._show_sent(), self.turn.profile)
        plan = plan_compaction(account, said, self.settings)
        if plan is None:
            return
        key = self.body.keys[plan.last]
        self.decided = replace(
            self.decided,
            boundary=key,
            head=plan.head,
            cleared={},
            depth=None,
            saved_tokens=plan.saved_tokens,
            rewrite_tokens=0,
        )
        self.cuts = [f"compaction: about {plan.saved_tokens:,} tokens gave way to notes"]

    @property
    def settings(self) -> Settings:
        """Of the project, the same for all of the request."""
        if self._settings is None:
            self._settings = self.tools.memory.read_settings(self.turn.project)
        return self._settings

    def _show_sent(self) -> list[Message]:
        results = {**find_stand_ins(self.state), **self.decided.results}
        return show_sent(self.messages, self.body.keys, results)

    def _open_account(self, *, in_flight: bool = False) -> ClearingAccount:
        if self._inputs is None:
            betas = self.turn.headers.get("anthropic-beta", "")
            self._inputs = ClearingInputs(
                model=self.model,
                model_name=self.facts.model,
                capabilities=self.capabilities,
                settings=self.settings,
                params=self.body.read_edits(),
                betas=tuple(name.strip() for name in betas.split(",")),
                ttl=LONG_TTL if b'"1h"' in self.turn.body else DEFAULT_LIFETIME,
                is_automatic_cache=self.facts.wire != "messages",
            )
        return open_account(self._inputs, self.state, self.body, self._show_sent(), in_flight=in_flight)

    def _ask_memory(self, layer: str, ask: Callable[[Callable[[], bool]], str]) -> str:
        """What memory has to say, if it says it in time; the agent waits for this."""
        late = threading.Event()
        asked = self.tools.submit(lambda: ask(late.is_set))
        try:
            return asked.result(self.tools.memory_seconds)
        except FutureTimeout:
            late.set()
            self.failures.append(f"{layer}: there was no answer within {self.tools.memory_seconds:g} s")
            return ""

    def _add_text(self, layer: str, at: BodyMessage, text: str) -> None:
        if not text:
            return
        before = self.decided.texts.get(at.key)
        whole = f"{before}\n\n{text}" if before else text
        self.decided = replace(self.decided, texts={**self.decided.texts, at.key: whole})
        self.added[layer] = round(estimate_text_tokens(text))

    def _find_tail(self, fresh: list[BodyMessage]) -> BodyMessage | None:
        """The message that texts are put behind: the last of the user's side."""
        sides = ("user",) if self.facts.wire == "messages" else ("user", "tool")
        return next((entry for entry in reversed(fresh) if entry.role in sides), None)

    def _behind(self, fresh: list[BodyMessage]) -> list[BodyMessage]:
        return self.body.entries[self.body.entries.index(fresh[0]) :]

    def _choose_mark(self, before: tuple[str, ...], common: int) -> bool:
        """Whether to add a breakpoint. Writing to the cache costs more than not, so the first request of a
        conversation, which may be the last, gets none."""
        if self.facts.wire != "messages" or not self.allows("breakpoints"):
            return False
        if self.body.is_tail_marked or self.body.breakpoints >= MAX_BREAKPOINTS:
            return False
        if before == self.body.keys:  # sent again
            return self.state.is_marked
        return bool(before and common == len(before)) or bool(not before and self.state.shared)

    def _record(self, common: int, *, is_marked: bool) -> None:
        """Write down what was decided, before it is sent."""
        line: dict[str, Json] = {
            "kind": "request",
            "at": self.turn.at.isoformat(),
            "keep": common,
            "add": self.body.keys[common:],
            **self.decided.to_json(),
        }
        if is_marked:
            line["marked"] = True
        try:
            self.tools.store.record(self.state, line, is_durable=not self.decided.is_empty)
        except StoreError as error:
            self.decided, self.added, self.newly_saved = Decisions(), {}, {}
            self.failures.append(str(LayerFailed("state", error)))

    # What is sent.

    def _apply(self, *, is_marked: bool) -> None:
        state, body = self.state, self.body
        replaced = {key.partition("/")[0] for key in (*state.results, *state.cleared)}
        for result in list(body.results(entry for entry in body.entries if entry.key in replaced)):
            layer = "clearing" if result.key in state.cleared else "spill"
            text = state.cleared.get(result.key) or state.results.get(result.key)
            if text is not None:
                is_new = result.key in self.decided.results
                saved = state.sizes.get(result.key)
                if saved is None or result.key in self.decided.cleared:
                    saved = max(0, _count_tokens(result.value) - round(estimate_text_tokens(text)))
                    state.sizes[result.key] = saved
                self._count_saved(layer, saved, is_new=is_new)
                body.replace_result(result, text)
        for entry in body.entries:
            if entry.key in state.texts:
                body.append_text(entry.at, state.texts[entry.key])
        if state.boundary in body.keys:
            last = body.keys.index(state.boundary)
            self.saved["compaction"] = state.compacted_tokens
            body.replace_beginning(body.entries[last].at, state.head)
        if state.depth:
            self._tell_provider()
        if is_marked:
            is_tail = not state.shared or len(state.requests) > 1
            self.is_marked = body.mark(body.entries[-1 if is_tail else state.shared - 1].at)

    def _tell_provider(self) -> None:
        """Have the provider clear what was decided, if the account can be had."""
        try:
            account = self._open_account(in_flight=True)
        except Exception as error:
            self.failures.append(str(LayerFailed("clearing", error)))
            return
        edits = account.make_edits()
        if edits.betas:
            self.body.set_field(CONTEXT_MANAGEMENT_PARAM, thaw(edits.params[CONTEXT_MANAGEMENT_PARAM]))
            self.betas = edits.betas
            self.saved["clearing"] = account.cleared_tokens

    def _count_saved(self, layer: str, saved: int, *, is_new: bool) -> None:
        self.saved[layer] = self.saved.get(layer, 0) + saved
        if is_new:
            self.newly_saved[layer] = self.newly_saved.get(layer, 0) + saved

    def _finish(self) -> PreparedTurn:
        body = self.body
        data = body.write() if body.is_changed else self.turn.body
        marked = ["breakpoints"] if self.is_marked else []
        decided = {
            "spill": self.decided.results,
            "clearing": self.decided.cleared or self.decided.depth,
            "compaction": self.decided.boundary,
        }
        acted = [*(name for name, what in decided.items() if what), *self.added, *marked]
        touch = RequestTouch(
            conversation=self.state.name,
            is_changed=data != self.turn.body,
            acted=tuple(acted),
            saved=self.saved,
            newly_saved=self.newly_saved,
            added=self.added,
            cuts=tuple(self.cuts),
            failures=tuple(self.failures),
            notes=tuple(self.notes),
        )
        return PreparedTurn(
            body=data, facts=self.facts, touch=touch, betas=self.betas, state=self.state, turn=self.turn
        )


def _is_text(result: ToolResult) -> bool:
    """Whether a result is nothing but text: an image would be lost to the model."""
    content = result.content
    return isinstance(content, str) or all(isinstance(block, Text) for block in content or ())


def _count_tokens(result: ToolResult) -> int:
    content = result.content
    texts = (
        [content]
        if isinstance(content, str)
        else [one.text for one in content or () if isinstance(one, Text)]
    )
    return round(sum(map(estimate_text_tokens, texts)))
