"""The model's part of a request: asks the `Brain`, truncates and signs its reply, and bills each run.

`fit_reply` truncates at a stop sequence, at `max_tokens`, or at the end of the window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby
from operator import is_

from sevenfold.core.cache.prompt_blocks import EFFORT_KIND, PromptBlock
from sevenfold.core.cache.prompt_cache import CacheScope, PartCounter, PromptBill, RenderedPrompt
from sevenfold.core.json import EMPTY_OBJECT, JsonObject
from sevenfold.core.messages import (
    Block,
    Message,
    RedactedThinking,
    Text,
    Thinking,
    ToolUse,
    ToolUseId,
    read_message,
)
from sevenfold.simulator.brain import Prompt, Reply
from sevenfold.simulator.checks.blocks import render_block_wire, sign_reply
from sevenfold.simulator.checks.context_management import CompactEdit, make_signed_block, make_threshold_block
from sevenfold.simulator.checks.validate_params import is_cache_warmup, read_tool_schemas
from sevenfold.simulator.prepare import PreparedPrompt, render_request_prompt
from sevenfold.simulator.simulator_state import SimulatorState, count_block_tokens
from sevenfold.simulator.wire.answer import RunUsage
from sevenfold.simulator.wire.error_response import make_invalid_request
from sevenfold.simulator.wire.message_cache import CachedMessage
from sevenfold.simulator.wire.messages_request import MessagesRequest, as_word, is_deleted, with_wire_fields


@dataclass(frozen=True, slots=True)
class OutputRoom:
    """How much may be said."""

    max_tokens: int
    window_tokens: int
    """What the window has left after the prompt."""

    @property
    def tokens(self) -> int:
        return min(self.max_tokens, self.window_tokens)

    @property
    def reason(self) -> str:
        """Why a reply ended that was cut."""
        return "max_tokens" if self.max_tokens <= self.window_tokens else "model_context_window_exceeded"


@dataclass(frozen=True, slots=True)
class LimitedReply:
    """What is really returned."""

    blocks: tuple[Block, ...]
    stop_reason: str
    stop_sequence: str | None = None
    is_cut_thinking: bool = False
    """It ended while the model was still thinking."""


@dataclass(frozen=True, slots=True)
class OutputTokens:
    """What an answer is billed as."""

    output: int
    thinking: int
    """Of the output."""


LIMIT_STOPS = frozenset({"max_tokens", "model_context_window_exceeded"})
"""Reasons that mean: the model would have gone on, and used all the room it had."""


def compute_billed_tokens(output: LimitedReply, room: OutputRoom, said: int, thought: int) -> OutputTokens:
    """An answer that reached its limit is billed all of it, however little of it could be returned.

    `said` are the tokens of what is returned, `thought` those of the thinking in it.
    """
    if output.stop_reason not in LIMIT_STOPS:
        tokens = min(max(1, said), room.tokens)
        return OutputTokens(tokens, min(thought, tokens))
    spoken = min(said - thought, room.tokens)
    return OutputTokens(
        room.tokens, room.tokens - spoken if output.is_cut_thinking else min(thought, room.tokens)
    )


def fit_reply(
    reply: Reply, room: OutputRoom, stops: Sequence[str], count: PartCounter, *, keeps_tools: bool = False
) -> LimitedReply:
    """The part of a reply that comes before the first reason to stop."""
    natural = "tool_use" if any(isinstance(block, ToolUse) for block in reply.blocks) else "end_turn"
    output = _at_stop(LimitedReply(reply.blocks, reply.stop_reason or natural), stops)
    kept: list[Block] = []
    left = room.tokens
    for block in output.blocks:
        cost = count("messages", render_block_wire(block))
        if cost > left:
            part = _cut(block, left, count, keeps_tools=keeps_tools)
            is_thinking = isinstance(block, (Thinking, RedactedThinking))
            return LimitedReply(
                (*kept, part) if part else tuple(kept), room.reason, is_cut_thinking=is_thinking
            )
        left -= cost
        kept.append(block)
    return output


def with_tool_ids(blocks: Sequence[Block], new_id: str) -> tuple[Block, ...]:
    """Tool requests that came without an id get one made from the reply's."""
    return tuple(
        replace(block, id=ToolUseId(f"toolu_{new_id}{at:02d}"))
        if isinstance(block, ToolUse) and not block.id
        else block
        for at, block in enumerate(blocks)
    )


def _at_stop(output: LimitedReply, stops: Sequence[str]) -> LimitedReply:
    for at, block in enumerate(output.blocks):
        if not isinstance(block, Text):
            continue
        ends = {block.text.find(stop): stop for stop in stops if stop in block.text}
        if ends:
            end = min(ends)
            said = (Text(block.text[:end]),) if end else ()
            return LimitedReply((*output.blocks[:at], *said), "stop_sequence", ends[end])
    return output


def _cut(block: Block, tokens: int, count: PartCounter, *, keeps_tools: bool) -> Block | None:
    """As much of a text as fits; of anything else nothing, since half a tool request is none.

    Where tool requests are kept, what was asked is lost, and the tool's name is left.
    """
    if isinstance(block, ToolUse) and keeps_tools:
        return replace(block, input=EMPTY_OBJECT)
    if not isinstance(block, Text):
        return None
    low, high = 0, len(block.text)
    while low < high:
        middle = (low + high + 1) // 2
        if count("messages", render_block_wire(Text(block.text[:middle]))) <= tokens:
            low = middle
        else:
            high = middle - 1
    return Text(block.text[:low]) if low else None


SUMMARY_REQUEST = "Summarise the conversation so far, so that it can be continued from the summary alone."
"""What is billed as the summary's instruction where a client sends none of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedReply:
    content: tuple[JsonObject, ...]
    stop_reason: str
    stop_sequence: str | None
    runs: tuple[RunUsage, ...]
    seen: RenderedPrompt
    """The prompt that was answered last."""
    overrides: Mapping[str, int]


class ReplyGenerator:
    """One request being answered; `delay` is real time that passes before its answer begins."""

    def __init__(
        self,
        call: MessagesRequest,
        prepared: PreparedPrompt,
        world: SimulatorState,
        suffix: str,
        delay: timedelta = timedelta(),
    ) -> None:
        self._call, self._prepared, self._world, self._suffix = call, prepared, world, suffix
        self._delay = delay

    async def answer(self) -> GeneratedReply:
        """Ask the brain as often as the request needs."""
        call, prepared = self._call, self._prepared
        window = call.model.window_tokens
        if prepared.tokens > window:
            raise make_invalid_request(f"prompt is too long: {prepared.tokens} tokens > {window} maximum")
        if call.body.get("compaction") is not None:
            return await self._compact_on_demand()
        if is_cache_warmup(call):
            spent = RunUsage("message", await self._begin(self._look_up(prepared.seen)), 0)
            return GeneratedReply(
                content=(),
                stop_reason="max_tokens",
                stop_sequence=None,
                runs=(spent,),
                seen=prepared.seen,
                overrides={},
            )
        compacting = prepared.compacting
        if compacting is not None and prepared.tokens >= compacting.trigger_tokens:
            return await self._compact_first(compacting)
        return await self._converse(prepared.seen)

    async def _converse(
        self, seen: RenderedPrompt, opening: tuple[JsonObject, ...] = (), before: tuple[RunUsage, ...] = ()
    ) -> GeneratedReply:
        """The reply itself. `opening` stands before its own content, `before` was spent already."""
        call, prepared = self._call, self._prepared
        bill = self._look_up(seen)
        reply = await self._ask(seen)
        room = OutputRoom(_max_tokens(call), call.model.window_tokens - seen.tokens)
        keeps_tools = self._world.choices.cut_tools == "empty"
        output = fit_reply(reply, room, _stops(call), prepared.count, keeps_tools=keeps_tools)
        await self._begin(bill)
        said = self._sign(output, opening)
        thoughts = [block for block in said if block.get("type") in {"thinking", "redacted_thinking"}]
        tokens = compute_billed_tokens(output, room, self._count(said), self._count(thoughts))
        spent = RunUsage("message", bill, tokens.output, tokens.thinking)
        content = (*opening, *said)
        return GeneratedReply(
            content=content,
            stop_reason=output.stop_reason,
            stop_sequence=output.stop_sequence,
            runs=(*before, spent),
            seen=seen,
            overrides=reply.usage,
        )

    async def _compact_first(self, compacting: CompactEdit) -> GeneratedReply:
        """The prompt has reached the threshold: it is summarised, and the answer goes on from the summary."""
        prepared = self._prepared
        summary = await self._summarise(compacting.instructions)
        reply, spent = summary.reply, summary.spent
        block = make_threshold_block(reply.text or None)
        if compacting.pauses:
            return self._end_after(summary, block)
        if not reply.text:
            return await self._converse(prepared.seen, (block,), (spent,))
        message = JsonObject({"role": "assistant", "content": (block,)})
        body = JsonObject({**prepared.body, "messages": (message,)})
        return await self._converse(
            render_request_prompt(body, prepared.count, self._world), (block,), (spent,)
        )

    async def _compact_on_demand(self) -> GeneratedReply:
        call, prepared = self._call, self._prepared
        instructions = call.part("compaction").get("instructions")
        summary = await self._summarise(
            instructions if isinstance(instructions, str) and instructions.strip() else None
        )
        if not summary.reply.text:
            return self._end_after(summary, None)
        return self._end_after(summary, make_signed_block(call, prepared.binding, summary.reply.text))

    def _end_after(self, summary: _Summary, block: JsonObject | None) -> GeneratedReply:
        """The reply that ends with a summary: its block, or nothing where the model wrote none."""
        reply = summary.reply
        return GeneratedReply(
            content=() if block is None else (block,),
            stop_reason="compaction" if block is not None else reply.stop_reason or "end_turn",
            stop_sequence=None,
            runs=(summary.spent,),
            seen=self._prepared.seen,
            overrides=reply.usage,
        )

    async def _summarise(self, instructions: str | None) -> _Summary:
        seen, model = self._prepared.seen, self._call.model
        bill = self._look_up(seen)
        reply = await self._ask(seen, instructions, is_summary=True)
        request = JsonObject({"type": "text", "text": instructions or SUMMARY_REQUEST})
        asked = self._world.tokenizer(model, "messages", request)
        await self._begin(bill)
        said = JsonObject({"type": "text", "text": reply.text})
        spent = RunUsage("compaction", replace(bill, fresh=bill.fresh + asked), self._count([said]))
        return _Summary(reply, spent)

    async def _ask(
        self, seen: RenderedPrompt, instructions: str | None = None, *, is_summary: bool = False
    ) -> Reply:
        call, world = self._call, self._world
        system = [as_word(block.wire.get("text")) for block in seen.blocks if block.level == "system"]
        schemas = read_tool_schemas(call.body)
        prompt = Prompt(
            number=world.next_question(),
            model=call.model_name,
            system="\n\n".join(text for text in system if text),
            tools=tuple(schemas),
            messages=self._messages(seen),
            max_tokens=_max_tokens(call),
            thinks=is_thinking_on(call),
            purpose="summary" if is_summary else "reply",
            instructions=instructions,
            tool_schemas=schemas,
        )
        return await world.brain.reply(prompt)

    def _messages(self, seen: RenderedPrompt) -> tuple[Message, ...]:
        """What the model sees, as values; a result deleted from the cached prefix is a placeholder to it."""
        deleted, text = self._prepared.deleted, self._world.choices.cleared_text
        blocks = [block for block in seen.blocks if block.turn >= 0 and block.kind != EFFORT_KIND]
        if deleted:
            blocks = [
                with_wire_fields(block, content=text) if is_deleted(block.wire, deleted) else block
                for block in blocks
            ]
        listing = self._call.listing
        known = listing.messages
        if not deleted and len(blocks) == len(listing.spoken) and seen is self._prepared.sent:
            return tuple([item.value or _value(item.spoken, item) for item in known if item.spoken])
        return tuple(
            _value(tuple(group), known[turn] if turn < len(known) else None)
            for turn, group in groupby(blocks, key=_turn)
        )

    def _sign(self, output: LimitedReply, opening: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
        call, binding = self._call, self._prepared.binding
        for wire in opening:
            binding.advance(
                PromptBlock(
                    path="",
                    level="messages",
                    role="assistant",
                    kind=as_word(wire.get("type")),
                    wire=wire,
                    turn=0,
                )
            )
        blocks = with_tool_ids(output.blocks, self._suffix)
        return sign_reply(binding, call.model, blocks, shows=is_thinking_shown(call, self._world), turn=0)

    def _look_up(self, seen: RenderedPrompt) -> PromptBill:
        call = self._call
        return self._world.cache.look_up(
            CacheScope(call.envelope.workspace), call.model, seen.parts, call.started
        )

    async def _begin(self, bill: PromptBill) -> PromptBill:
        """The answer begins: whoever comes from here on can read what this request wrote."""
        world = self._world
        # Once, however many runs the answer takes.
        delay, self._delay = self._delay, timedelta()
        if bill.writes:
            await world.arrivals.settle(world.choices.first_token + delay)
        else:
            await world.arrivals.pause(delay)
        world.cache.begin_response(bill, world.clock.now())
        return bill

    def _count(self, blocks: list[JsonObject] | tuple[JsonObject, ...]) -> int:
        return count_block_tokens(self._world.tokenizer, self._call.model, blocks)


@dataclass(frozen=True, slots=True)
class _Summary:
    reply: Reply
    spent: RunUsage


def is_thinking_on(call: MessagesRequest) -> bool:
    """Whether the model thinks on this request."""
    kind = call.part("thinking").get("type")
    return call.features.thinks_unasked if kind is None else kind in {"adaptive", "enabled"}


def is_thinking_shown(call: MessagesRequest, world: SimulatorState) -> bool:
    """Whether the text of the thinking is returned, or its signature alone."""
    display = call.part("thinking").get("display")
    if display is not None:
        return display != "omitted"
    chosen = world.choices.shows_thinking
    return call.features.shows_thinking if chosen is None else chosen


def _max_tokens(call: MessagesRequest) -> int:
    asked = call.body.get("max_tokens")
    return asked if isinstance(asked, int) else call.model.max_output_tokens


def _stops(call: MessagesRequest) -> tuple[str, ...]:
    stops = call.body.get("stop_sequences")
    return tuple(as_word(stop) for stop in stops) if isinstance(stops, tuple) else ()


def _turn(block: PromptBlock) -> int:
    return block.turn


def _value(blocks: tuple[PromptBlock, ...], known: CachedMessage | None) -> Message:
    """What is left of a message, as a value: kept for the next request where it is the whole message."""
    is_whole = known is not None and all(map(is_, blocks, known.spoken)) and len(blocks) == len(known.spoken)
    if is_whole and known is not None and known.value is not None:
        return known.value
    value = read_message({"role": blocks[0].role, "content": [block.wire for block in blocks]})
    if is_whole and known is not None:
        known.value = value
    return value
