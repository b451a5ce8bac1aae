"""Conversations as they come in pieces, and a cache that they are sent to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from random import Random

from sevenfold.core.cache.prompt_cache import (
    DEFAULT_CACHE_CHOICES,
    CacheChoices,
    PromptBill,
    PromptCache,
    PromptLevel,
    RenderedPrompt,
    render_prompt,
)
from sevenfold.core.canonical import CACHE_CONTROL, strip_cache_control
from sevenfold.core.json import Json, JsonObject, freeze, write_json
from sevenfold.core.messages import (
    Block,
    Message,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    ToolUseId,
    write_block,
)
from sevenfold.core.prices import CATALOG
from sevenfold.core.requests import Breakpoint, RequestParams, choose_capabilities
from sevenfold.session.cache.placement import (
    INITIAL_BREAKPOINT_STATE,
    BreakpointPlan,
    BreakpointState,
    CacheSettings,
    collect_breakpoint_facts,
    is_breakpoint_allowed,
    plan_breakpoints,
)
from tests.core.cache_cases import HERE, START

STEP = timedelta(seconds=5)
"""Short enough for a whole conversation with its forks to stay within five minutes."""

SYSTEM = "You are careful. " * 200
FRAME = RequestParams(model="claude-opus-5", max_tokens=1_000, system=SYSTEM)
SETTINGS = CacheSettings()


def unmarked_bytes(level: PromptLevel, block: JsonObject) -> int:
    return len(write_json(strip_cache_control(block)))


def wire(frame: RequestParams, view: Sequence[Message], marks: Sequence[Breakpoint]) -> JsonObject:
    """The body of a request."""
    messages: list[dict[str, object]] = []
    for index, message in enumerate(view):
        blocks: list[object] = [write_block(block) for block in message.blocks]
        for mark in marks:
            if mark.level == "messages" and mark.index == index:
                blocks[mark.block] = _marked(blocks[mark.block], mark)
        messages.append({"role": message.role, "content": blocks})
    tools = [
        _marked(tool, mark) if (mark := _mark_at(marks, "tools", index)) else tool
        for index, tool in enumerate(frame.tools)
    ]
    parts = [{"type": "text", "text": frame.system}] if isinstance(frame.system, str) else [*frame.system]
    system = [
        _marked(part, mark) if (mark := _mark_at(marks, "system", index)) else part
        for index, part in enumerate(parts)
    ]
    body = freeze({"model": frame.model, "max_tokens": frame.max_tokens, "messages": messages})
    rest = freeze({"tools": tools, "system": system})
    assert isinstance(body, JsonObject)
    assert isinstance(rest, JsonObject)
    return JsonObject({**body, **rest, **frame.params})


def _mark_at(marks: Sequence[Breakpoint], level: str, index: int) -> Breakpoint | None:
    return next((mark for mark in marks if mark.level == level and mark.index == index), None)


def _marked(block: object, mark: Breakpoint) -> Json:
    frozen = freeze(block)
    assert isinstance(frozen, JsonObject)
    name = "1h" if mark.ttl == timedelta(hours=1) else "5m"
    return JsonObject({**frozen, CACHE_CONTROL: JsonObject({"type": "ephemeral", "ttl": name})})


class Line:
    """One conversation that is marked by our placement, or naively, and sent to a cache."""

    def __init__(
        self,
        frame: RequestParams = FRAME,
        choices: CacheChoices = DEFAULT_CACHE_CHOICES,
        *,
        naive: bool = False,
    ) -> None:
        self.frame, self.naive, self.choices = frame, naive, choices
        self.cache = PromptCache(choices)
        self.now = START
        self.view: list[Message] = []
        self.state: BreakpointState = INITIAL_BREAKPOINT_STATE
        self.prompt: RenderedPrompt | None = None
        self.promised = 0
        """Tokens up to the last marker of the last request that was answered."""

    def fork(self) -> Line:
        """A line of its own that goes on from here, on the same cache."""
        other = Line(self.frame, self.choices, naive=self.naive)
        other.cache, other.now, other.view = self.cache, self.now, list(self.view)
        other.state, other.promised, other.prompt = self.state, self.promised, self.prompt
        return other

    def plan(self) -> BreakpointPlan:
        model = CATALOG.find(self.frame.model)
        if self.naive:
            return BreakpointPlan(tuple(last_block(self.view)), self.state)
        facts = collect_breakpoint_facts(
            self.frame, model, choose_capabilities(model, "anthropic"), len(SYSTEM)
        )
        return plan_breakpoints(self.view, facts, SETTINGS, self.state)

    def send(self, *, fails: bool = False) -> PromptBill:
        """A moment later: plan, send, and let the answer begin unless the request fails."""
        self.now += STEP
        placement = self.plan()
        body = wire(self.frame, self.view, placement.breakpoints)
        self.prompt = render_prompt(body, unmarked_bytes, choices=self.choices, after=self.prompt)
        bill = self.cache.look_up(HERE, CATALOG.find(self.frame.model), self.prompt.parts, self.now)
        self.state = placement.state if fails else placement.answered()
        if not fails:
            self.cache.begin_response(bill, self.now)
            self.promised = bill.total - bill.fresh
        return bill


def last_block(view: Sequence[Message]) -> list[Breakpoint]:
    """The naive placement: the last block alone."""
    for index in range(len(view) - 1, -1, -1):
        blocks = view[index].blocks
        for at in range(len(blocks) - 1, -1, -1):
            if is_breakpoint_allowed(blocks[at]):
                return [Breakpoint("messages", index, at)]
    return []


def spoken(text: str) -> Message:
    return Message("user", text)


def random_round(random: Random, name: str, most: int, *, thinks: bool = True) -> list[Message]:
    """An answer and what follows it: text, thinking, parallel calls with their results, reminders."""
    said: list[Block] = []
    results: list[Block] = []
    for at in range(random.randint(1, max(1, most // 2))):
        kind = random.choice(("text", "use", "use", "thinking" if thinks else "text"))
        if kind == "use":
            use = ToolUseId(f"{name}_{at}")
            said.append(ToolUse(use, "look", JsonObject({"at": name})))
            results.append(ToolResult(use, f"seen {name} {at}"))
        elif kind == "thinking":
            said.append(Thinking(f"thought {name} {at}", "signed"))
        else:
            said.append(Text(f"text {name} {at}"))
    results += [
        Text(f"more {name} {at}") for at in range(random.randint(0 if results else 1, max(1, most // 4)))
    ]
    if random.random() < 0.2:
        results.append(Text(""))
    return [Message("assistant", tuple(said)), Message("user", tuple(results))]
