"""From a request as sent to the prompt that the model sees: thinking checked, edits applied, all counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sevenfold.core.cache.prompt_blocks import EFFORT_KIND, PromptBlock
from sevenfold.core.cache.prompt_cache import PartCounter, RenderedPrompt, render_prompt
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import ToolUseId
from sevenfold.simulator.apply_edits import EditedBlocks, apply_thinking_clearing, apply_tool_clearing
from sevenfold.simulator.cache_edits import FIELD, describe_deletion, read_deleted, without_deleted
from sevenfold.simulator.checks.compaction_blocks import select_current_blocks
from sevenfold.simulator.checks.context_edits import CompactEdit, parse_context_edits
from sevenfold.simulator.checks.thinking_check import Transformation, check_thinking
from sevenfold.simulator.state.counting import make_part_counter
from sevenfold.simulator.state.request_records import RequestRecord
from sevenfold.simulator.state.simulator_state import SimulatorState
from sevenfold.simulator.wire.binding_chain import BindingChain
from sevenfold.simulator.wire.messages_request import MessagesRequest
from sevenfold.simulator.wire.request_blocks import rebuild_body


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
    deleted = read_deleted(call.part(FIELD))
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
        compacting=edits.compacting,
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
    """An earlier prompt if its counts hold here: same model, and no block was told to weigh nothing."""
    if after is None or after.model != call.model_name:
        return None
    return after if all(part.tokens or part.kind == EFFORT_KIND for part in after.parts) else None
