"""The layers under an agent that somebody else wrote: what a main turn is sent with.

Each request holds the whole conversation again, as the agent knows it. First everything that was decided
before is applied again, byte for byte. Then new messages are looked at, once: large results are stored, and
what a prompt recalls is added behind it. New decisions are durable before the request is sent. A layer that
fails decides nothing in this request, and the ledger says so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from sevenfold.core.errors import StoreError
from sevenfold.core.json import Json
from sevenfold.core.messages import Message, Text, ToolResult, ToolUse
from sevenfold.core.models import Model
from sevenfold.core.prices import CATALOG, Catalog
from sevenfold.core.requests import MAX_BREAKPOINTS, Capabilities, choose_capabilities
from sevenfold.core.tokens.estimation import estimate_text_tokens
from sevenfold.core.tool_kinds import find_tool
from sevenfold.core.usage import Usage
from sevenfold.layers.memory.extraction.drafts import RecordedMessage
from sevenfold.layers.tool_results.policy import FreshResult, ToolResultSettings, choose_spilled
from sevenfold.proxy.bodies import BodyMessage, RequestBody, UnfitBody, parse_body, read_entry
from sevenfold.proxy.memory import ProxyMemory, read_prompt, strip_machine_text
from sevenfold.proxy.profiles import AgentProfile, LayerName
from sevenfold.proxy.requests import RequestFacts, describe_request
from sevenfold.proxy.state import STATE_LOST, ConversationState, Decisions, StateStore
from sevenfold.proxy.touches import RequestTouch

MEMORY_SECONDS = 1.0
"""How long a request waits for what a prompt recalls."""

ANSWER_SECONDS = 0.2
"""How long a request waits for the account of the one before, which is written as its response ends."""

CLIENT_CUT = "the client changed or compacted what it sent before"

_T = TypeVar("_T")


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


@dataclass(slots=True, kw_only=True)
class ProxyLayers:
    """The layers of all conversations. `prepare` and `answered` block; for any thread."""

    store: StateStore
    memory: ProxyMemory
    catalog: Catalog = CATALOG
    learn_errors: list[str] = field(default_factory=list[str])
    """Why something was not looked through."""
    _threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(8, thread_name_prefix="sevenfold-proxy-memory")
    )
    _unlearnt: dict[str, PreparedTurn] = field(default_factory=dict[str, PreparedTurn])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def prepare(self, turn: TurnRequest) -> PreparedTurn:
        """The request to send. Raises nothing that a client would notice: `UnfitBody` where it is to be
        forwarded as it came."""
        fields = parse_body(turn.body)
        facts = describe_request(turn.path, turn.headers, fields, turn.profile)
        if facts.purpose != "turn" or not turn.profile.layers:
            return PreparedTurn(body=turn.body, facts=facts, touch=RequestTouch())
        model = self.catalog.find(facts.model)
        capabilities = choose_capabilities(model, "anthropic" if facts.wire == "messages" else "openai")
        body = RequestBody.read(
            facts.wire, fields, tag=turn.profile.moving_tag, moves=capabilities.rewrites_history
        )
        if not body.entries:
            raise UnfitBody("it has no messages")
        state = self.store.find(turn.client, facts, body.keys)
        # The client may be faster than the account of its last request.
        state.is_answered.wait(ANSWER_SECONDS)
        with state.lock:
            state.is_answered.clear()
            self.store.refresh(state)
            work = TurnWork(self, turn, facts, model, capabilities, body, state)
            return work.run()

    def answered(self, prepared: PreparedTurn, usage: Usage | None, *, is_ended: bool) -> None:
        """A request was answered; `is_ended`: without a call, so that the turn is over."""
        state = prepared.state
        if state is None:
            return
        with state.lock:
            if usage is not None and usage.prompt:
                with suppress(StoreError):
                    line: dict[str, Json] = {"kind": "answer", "tokens": usage.prompt}
                    self.store.record(state, line, is_durable=False)
        state.is_answered.set()
        with self._lock:
            self._unlearnt[state.name] = prepared
        if is_ended:
            self.submit(lambda: self._learn_once(state.name))

    def finish(self) -> None:
        """Look through what is left when the agent has ended."""
        with self._lock:
            left, self._unlearnt = list(self._unlearnt.values()), {}
        for prepared in left:
            self._learn(prepared)

    def _learn_once(self, name: str) -> None:
        with self._lock:
            prepared = self._unlearnt.pop(name, None)
        if prepared is not None:
            self._learn(prepared)

    def close(self) -> None:
        self._threads.shutdown(wait=True)
        self.memory.close()
        self.store.close()

    def submit(self, work: Callable[[], _T]) -> Future[_T]:
        return self._threads.submit(work)

    def _learn(self, prepared: PreparedTurn) -> None:
        state, turn = prepared.state, prepared.turn
        if state is None or turn is None or "extraction" not in turn.profile.layers:
            return
        with state.lock:
            pairs = list(zip(state.keys, state.messages, strict=False))
        said = strip_machine_text((message for _, message in pairs), turn.profile)
        heard = [RecordedMessage(key, message) for (key, _), message in zip(pairs, said, strict=True)]
        try:
            self.memory.learn(turn.project, state.name, heard)
        except Exception as error:
            self.learn_errors.append(f"{type(error).__name__}: {error}")


@dataclass(slots=True)
class TurnWork:
    """One request on its way through the layers, under the lock of its conversation."""

    layers: ProxyLayers
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
    is_marked: bool = False

    def run(self) -> PreparedTurn:
        state, keys = self.state, self.body.keys
        before, common = state.keys, state.count_common(keys)
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
            self._try("recall", lambda: self.layers.memory.forget_shown(self.turn.project, state.name))

    def _read_messages(self, common: int) -> None:
        """The messages as values; those that were read for the request before are the same objects."""
        kept = self.state.messages[:common] if len(self.state.messages) == len(self.state.keys) else []
        rest = self.body.entries[len(kept) :]
        self.messages = kept + [read_entry(self.facts.wire, self.body.messages[one.at]) for one in rest]

    @property
    def uses(self) -> dict[str, ToolUse]:
        blocks = (block for message in self.messages for block in message.blocks)
        return {block.id: block for block in blocks if isinstance(block, ToolUse)}

    # New decisions.

    def _decide(self, fresh: list[BodyMessage]) -> None:
        if self.allows("spill"):
            self._attempt("spill", lambda: self._spill(fresh))
        if self.allows("recall"):
            self._attempt("recall", lambda: self._recall(fresh))
        if self.allows("rules"):
            self._attempt("rules", lambda: self._find_rules(fresh))

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
        memory, project = self.layers.memory, self.turn.project
        settings = memory.read_settings(project).of(ToolResultSettings)
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
        # By what was said first, so that the same session has the same paths wherever it runs.
        spills = memory.open_spills(project, self.body.keys[0].partition(".")[0])
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
        memory, project, name = self.layers.memory, self.turn.project, self.state.name
        text = self._ask_memory("recall", lambda late: memory.recall(project, name, prompt, late))
        self._add_text("recall", at, text)

    def _find_rules(self, fresh: list[BodyMessage]) -> None:
        at, uses = self._find_tail(fresh), self.uses
        called = [uses[use] for one in self.body.results(fresh) if (use := one.value.tool_use_id) in uses]
        if at is None or not called:
            return
        memory, project, name = self.layers.memory, self.turn.project, self.state.name
        text = self._ask_memory("rules", lambda late: memory.find_rules(project, name, called, late))
        self._add_text("rules", at, text)

    def _ask_memory(self, layer: str, ask: Callable[[Callable[[], bool]], str]) -> str:
        """What memory has to say, if it says it in time; the agent waits for this."""
        late = threading.Event()
        asked = self.layers.submit(lambda: ask(late.is_set))
        try:
            return asked.result(MEMORY_SECONDS)
        except FutureTimeout:
            late.set()
            self.failures.append(f"{layer}: there was no answer within {MEMORY_SECONDS:g} s")
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
            self.layers.store.record(self.state, line, is_durable=not self.decided.is_empty)
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
                self._count_saved(layer, _count_tokens(result.value), text, is_new=is_new)
                body.replace_result(result, text)
        for entry in body.entries:
            if entry.key in state.texts:
                body.append_text(entry.at, state.texts[entry.key])
        if is_marked:
            is_tail = not state.shared or len(state.requests) > 1
            self.is_marked = body.mark(body.entries[-1 if is_tail else state.shared - 1].at)

    def _count_saved(self, layer: str, tokens: int, text: str, *, is_new: bool) -> None:
        saved = max(0, tokens - round(estimate_text_tokens(text)))
        self.saved[layer] = self.saved.get(layer, 0) + saved
        if is_new:
            self.newly_saved[layer] = self.newly_saved.get(layer, 0) + saved

    def _finish(self) -> PreparedTurn:
        body = self.body
        data = body.write() if body.is_changed else self.turn.body
        marked = ["breakpoints"] if self.is_marked else []
        acted = [*(["spill"] if self.decided.results else []), *self.added, *marked]
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
        return PreparedTurn(body=data, facts=self.facts, touch=touch, state=self.state, turn=self.turn)


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
