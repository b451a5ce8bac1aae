"""From a request to the prompt that the model sees: checks thinking, applies context edits, counts tokens.

Edits clear old tool results and old thinking. The client's history stays as it is; they change what the model
sees and what is billed.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from sevenfold.core.cache.prompt_blocks import EFFORT_KIND, PromptBlock
from sevenfold.core.cache.prompt_cache import PartCounter, RenderedPrompt, render_prompt
from sevenfold.core.json import EMPTY_OBJECT, JsonObject
from sevenfold.core.messages import ToolUseId
from sevenfold.simulator.checks.blocks import (
    SERVER_RESULT_TYPES,
    TOOL_REQUEST_TYPES,
    Transformation,
    check_thinking,
)
from sevenfold.simulator.checks.context_management import (
    CLEAR_THINKING_EDIT,
    CLEAR_TOOLS_EDIT,
    CompactEdit,
    ThinkingClearing,
    ToolClearing,
    parse_context_edits,
    select_current_blocks,
)
from sevenfold.simulator.ledger import RequestRecord
from sevenfold.simulator.simulator_state import SimulatorState, make_part_counter
from sevenfold.simulator.wire.messages_request import (
    CACHE_EDITS_FIELD,
    MessagesRequest,
    as_word,
    describe_deletion,
    get_tool_use_id,
    is_thinking_block,
    is_turn_start,
    read_deleted,
    rebuild_body,
    with_wire_fields,
    without_deleted,
)
from sevenfold.simulator.wire.signatures import BindingChain

TOOL_RESULT_TYPES = SERVER_RESULT_TYPES | {"tool_result"}


@dataclass(frozen=True, slots=True)
class EditedBlocks:
    """What became of the messages."""

    blocks: tuple[PromptBlock, ...]
    applied: tuple[JsonObject, ...] = ()
    cleared: frozenset[ToolUseId] = field(default_factory=frozenset[ToolUseId])


def apply_thinking_clearing(
    blocks: Sequence[PromptBlock], clearing: ThinkingClearing, count: PartCounter
) -> EditedBlocks:
    """Take the thinking of all but the newest turns out."""
    turns: list[list[PromptBlock]] = [[]]
    for block in blocks:
        if is_turn_start(block):
            turns.append([])
        turns[-1].append(block)
    thoughtful = [turn for turn in turns if any(is_thinking_block(block) for block in turn)]
    old = thoughtful[: -clearing.keep_turns] if clearing.keep_turns else []
    gone = [block for turn in old for block in turn if is_thinking_block(block)]
    if not gone:
        return EditedBlocks(tuple(blocks))
    paths = {block.path for block in gone}
    applied = JsonObject(
        {
            "type": CLEAR_THINKING_EDIT,
            "cleared_thinking_turns": len(old),
            "cleared_input_tokens": sum(count("messages", block.wire) for block in gone),
        }
    )
    return EditedBlocks(tuple(block for block in blocks if block.path not in paths), (applied,))


def apply_tool_clearing(
    blocks: Sequence[PromptBlock],
    clearing: ToolClearing,
    count: PartCounter,
    *,
    prompt_tokens: int,
    placeholder: str,
    already: AbstractSet[ToolUseId] = frozenset(),
) -> EditedBlocks:
    """Replace old tool results, oldest first, where the trigger says so.

    `already` were cleared by an earlier request: they stay cleared, and count for nothing.
    """
    before = _cleared(blocks, already, clearing, placeholder)
    saved = _tokens(blocks, count) - _tokens(before, count)
    pairs = _answered(before)
    used = prompt_tokens - saved if clearing.trigger.kind == "input_tokens" else len(pairs)
    chosen = frozenset(
        use
        for use, tool in list(pairs.items())[: max(0, len(pairs) - clearing.keep)]
        if tool not in clearing.excluded and use not in already
    )
    if used <= clearing.trigger.value or not chosen:
        return EditedBlocks(before, cleared=frozenset(already & pairs.keys()))
    after = _cleared(before, chosen, clearing, placeholder)
    freed = _tokens(before, count) - _tokens(after, count)
    # A result may be shorter than its placeholder: it is cleared all the same, and nothing is freed.
    freed = max(0, freed)
    if freed < clearing.at_least_tokens:
        return EditedBlocks(before, cleared=frozenset(already & pairs.keys()))
    applied = JsonObject(
        {"type": CLEAR_TOOLS_EDIT, "cleared_tool_uses": len(chosen), "cleared_input_tokens": freed}
    )
    return EditedBlocks(after, (applied,), frozenset(already & pairs.keys()) | chosen)


def _answered(blocks: Sequence[PromptBlock]) -> dict[ToolUseId, str]:
    """Tool uses that have a result, oldest first, with the tool's name; those of tools that the API runs
    itself count like all others."""
    names = {
        get_tool_use_id(block): as_word(block.wire.get("name"))
        for block in blocks
        if block.kind in TOOL_REQUEST_TYPES
    }
    results = (get_tool_use_id(block) for block in blocks if block.kind in TOOL_RESULT_TYPES)
    return {use: names[use] for use in results if use in names}


def _cleared(
    blocks: Sequence[PromptBlock], ids: AbstractSet[ToolUseId], clearing: ToolClearing, placeholder: str
) -> tuple[PromptBlock, ...]:
    def replaced(block: PromptBlock) -> PromptBlock:
        if block.kind in TOOL_RESULT_TYPES and get_tool_use_id(block) in ids:
            return with_wire_fields(block, content=placeholder)
        is_use = block.kind in TOOL_REQUEST_TYPES and get_tool_use_id(block) in ids
        if is_use and clearing.clears_input(as_word(block.wire.get("name"))):
            return with_wire_fields(block, input=EMPTY_OBJECT)
        return block

    return tuple(replaced(block) for block in blocks)


def _tokens(blocks: Sequence[PromptBlock], count: PartCounter) -> int:
    kinds = TOOL_REQUEST_TYPES | TOOL_RESULT_TYPES
    return sum(count("messages", block.wire) for block in blocks if block.kind in kinds)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedPrompt:
    sent: RenderedPrompt
    """As the client sent it, before any edit."""
    body: JsonObject
    """With what the model does not see taken out."""
    seen: RenderedPrompt
    count: PartCounter
    binding: BindingChain
    transformations: tuple[Transformation, ...]
    applied: tuple[JsonObject, ...]
    compacting: CompactEdit | None
    deleted: frozenset[ToolUseId]
    """Results that the `cache_edits` extension took out of the cached prefix."""

    @property
    def tokens(self) -> int:
        return self.seen.tokens


def prepare_prompt(
    call: MessagesRequest, world: SimulatorState, previous: RequestRecord | None = None
) -> PreparedPrompt:
    """Everything that happens to a prompt before it is looked up; refuses what the API would.

    `previous` is the request before it in its conversation: what both have is not hashed or counted again.
    """
    checked = check_thinking(call, world.choices)
    edits = parse_context_edits(call)
    deleted = read_deleted(call.part(CACHE_EDITS_FIELD))
    plain = make_part_counter(world.tokenizer, call.model)
    count = without_deleted(plain, deleted)
    before = None if previous is None or deleted else previous
    sent = render_request_prompt(
        call.body, count, world, _alike(before and before.sent, call), call.listing.blocks
    )
    model_saw = _alike(before and before.seen, call) or sent
    blocks = select_current_blocks(checked.blocks)
    is_whole = blocks is call.listing.spoken
    body = call.body if is_whole else rebuild_body(call.body, blocks)
    seen = sent if is_whole else render_request_prompt(body, count, world, model_saw)
    applied: list[JsonObject] = []
    edited = EditedBlocks(blocks)
    if edits.thinking is not None:
        edited = apply_thinking_clearing(edited.blocks, edits.thinking, count)
        applied += edited.applied
    if edits.tools is not None:
        workspace, sticky = call.envelope.workspace, world.choices.sticky_clearing
        edited = apply_tool_clearing(
            edited.blocks,
            edits.tools,
            count,
            prompt_tokens=seen.tokens,
            placeholder=world.choices.cleared_text,
            already=world.cleared[workspace] if sticky else frozenset(),
        )
        applied += edited.applied
        if sticky and call.endpoint == "messages":
            world.cleared[workspace] |= edited.cleared
    if edited.blocks != blocks:
        body = rebuild_body(call.body, edited.blocks)
        seen = render_request_prompt(body, count, world, model_saw)
    if deleted:
        applied.append(describe_deletion(seen, plain))
    return PreparedPrompt(
        sent=sent,
        body=body,
        seen=seen,
        count=count,
        binding=checked.binding,
        transformations=checked.transformations,
        applied=tuple(applied),
        compacting=edits.compact,
        deleted=deleted,
    )


def render_request_prompt(
    body: JsonObject,
    count: PartCounter,
    world: SimulatorState,
    after: RenderedPrompt | None = None,
    listed: Sequence[PromptBlock] | None = None,
) -> RenderedPrompt:
    """`listed` are the body's blocks, where they are known."""
    return render_prompt(
        body, count, choices=world.choices.cache, catalog=world.catalog, after=after, listed=listed
    )


def _alike(after: RenderedPrompt | None, call: MessagesRequest) -> RenderedPrompt | None:
    """An earlier prompt if its counts hold here: same model, and no block was deleted from the cache."""
    if after is None or after.model != call.model_name:
        return None
    return after if all(part.tokens or part.kind == EFFORT_KIND for part in after.parts) else None
