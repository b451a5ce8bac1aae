"""Thinking blocks that a client sends back: checks them against what they are bound to.

A block is kept, dropped, or the reason for a 400.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sevenfold.core.cache.prompt_blocks import THINKING_TYPES, PromptBlock
from sevenfold.core.json import JsonObject, freeze
from sevenfold.core.messages import Block, RedactedThinking, Thinking, write_block
from sevenfold.core.models import Model
from sevenfold.simulator.wire import betas
from sevenfold.simulator.wire.choices import Choices
from sevenfold.simulator.wire.error_response import make_invalid_request
from sevenfold.simulator.wire.messages_request import MessagesRequest
from sevenfold.simulator.wire.request_blocks import is_thinking_block
from sevenfold.simulator.wire.signatures import (
    NO_PREDECESSOR,
    BindingChain,
    ChainState,
    ThinkingSeal,
    get_signature,
    make_model_key,
    parse_thinking_seal,
)

TransformationKind: TypeAlias = Literal["thinking_dropped", "thinking_mismatch_allowed"]
BindingMismatch: TypeAlias = Literal["model_binding_mismatch", "prefix_binding_mismatch"]

_OPT_OUT = 'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'


@dataclass(frozen=True, slots=True)
class Transformation:
    """One entry of the answer's `input_transformations`."""

    fate: TransformationKind
    path: str
    reason: BindingMismatch

    @property
    def wire(self) -> JsonObject:
        return JsonObject({"type": self.fate, "path": self.path, "reason": self.reason})


@dataclass(frozen=True, slots=True)
class CheckedThinking:
    """A request's messages after the check."""

    blocks: tuple[PromptBlock, ...]
    """Less the thinking that was dropped."""
    transformations: tuple[Transformation, ...]
    binding: BindingChain
    """At the end of the request: what the reply's own thinking will be bound to."""


def check_thinking(call: MessagesRequest, choices: Choices) -> CheckedThinking:
    """Check every thinking block of the request as it was sent."""
    blocks = call.listing.spoken
    check = _ThinkingCheck(call, choices, _latest_turn(blocks))
    if not any(block.kind in THINKING_TYPES for block in blocks):
        check.binding.advance(*blocks)
        return CheckedThinking(blocks, (), check.binding)
    kept = tuple([block for block in blocks if check.keeps(block)])
    # The very same where nothing was dropped: then it need not be compared.
    return CheckedThinking(kept if len(kept) < len(blocks) else blocks, tuple(check.found), check.binding)


def needs_transformations(call: MessagesRequest) -> bool:
    return call.has(betas.THINKING_BINDING)


class _ThinkingCheck:
    """One pass over a request's blocks."""

    def __init__(self, call: MessagesRequest, choices: Choices, latest: int) -> None:
        thinking = call.part("thinking").get("block_binding")
        behaviour = thinking.get("prefix_mismatch_behavior") if isinstance(thinking, JsonObject) else None
        self._call, self._choices, self._latest = call, choices, latest
        self._drops = behaviour == "drop_block"
        self._enforces = is_binding_enforced(call.model, choices) or (
            call.model.has_preserved_thinking and behaviour is not None
        )
        self._dropping = False
        self.binding = BindingChain(call.body, call.listing.knowledge)
        self.found: list[Transformation] = []

    def keeps(self, block: PromptBlock) -> bool:
        """Whether the model gets to see a block; refuses the request where the API would."""
        if is_thinking_block(block) and not self._keeps_thinking(block):
            return False
        self.binding.advance(block)
        return True

    def _keeps_thinking(self, block: PromptBlock) -> bool:
        signature = get_signature(block.wire)
        seal = parse_thinking_seal(signature)
        if seal is None:
            if self._choices.foreign_signatures == "keep":
                return True
            raise self._forged(block)
        shown = block.wire.get("thinking")
        if shown and shown != seal.thinking:
            raise self._forged(block)
        if seal.model != make_model_key(self._call.model):
            return self._drop(block, "model_binding_mismatch")
        if self._dropping:
            return self._drop(block, "prefix_binding_mismatch")
        if not self._call.model.has_preserved_thinking or _holds(seal, self.binding.end):
            return True
        return self._mismatched(block)

    def _mismatched(self, block: PromptBlock) -> bool:
        if not self._enforces:
            self.found.append(
                Transformation("thinking_mismatch_allowed", block.path, "prefix_binding_mismatch")
            )
            return True
        if not self._drops:
            raise self._unbound(block)
        # What follows it was bound to a chain that went through it.
        self._dropping = True
        return self._drop(block, "prefix_binding_mismatch")

    def _drop(self, block: PromptBlock, reason: BindingMismatch) -> bool:
        self.found.append(Transformation("thinking_dropped", block.path, reason))
        return False

    def _forged(self, block: PromptBlock) -> Exception:
        if block.turn == self._latest:
            return make_invalid_request(
                f"{block.path}: `thinking` or `redacted_thinking` blocks in the latest assistant message "
                "cannot be modified. These blocks must remain as they were in the original response."
            )
        return make_invalid_request(f"{block.path}: Invalid `signature` in `{block.kind}` block")

    def _unbound(self, block: PromptBlock) -> Exception:
        told = (
            f"{block.path}: Invalid `signature` in `{block.kind}` block. The block is bound to a different "
            f"conversation. {_OPT_OUT}"
        )
        if not self._call.has(betas.THINKING_BINDING):
            told += f" This needs the `anthropic-beta: {betas.THINKING_BINDING}` header."
        return make_invalid_request(told)


def is_binding_enforced(model: Model, choices: Choices) -> bool:
    """Whether a block out of place fails a request that says nothing about it."""
    return model.has_preserved_thinking and (model.enforces_prefix or choices.is_new_account)


def sign_reply(
    binding: BindingChain, model: Model, blocks: Iterable[Block], *, shows: bool, turn: int
) -> tuple[JsonObject, ...]:
    """The wire form of a reply's blocks, its thinking signed over all that comes before it."""
    written: list[JsonObject] = []
    for index, block in enumerate(blocks):
        wire = _signed(binding, model, block, shows=shows)
        placed = PromptBlock(
            path=f"messages.{turn}.content.{index}",
            level="messages",
            role="assistant",
            kind=str(wire["type"]),
            wire=wire,
            turn=turn,
        )
        binding.advance(placed)
        written.append(wire)
    return tuple(written)


def _signed(binding: BindingChain, model: Model, block: Block, *, shows: bool) -> JsonObject:
    match block:
        case Thinking():
            signature = _seal(binding.end, model, block.thinking).write()
            text = block.thinking if shows else ""
            return JsonObject({"type": "thinking", "thinking": text, "signature": signature})
        case RedactedThinking():
            data = _seal(binding.end, model, block.data).write()
            return JsonObject({"type": "redacted_thinking", "data": data})
        case _:
            return render_block_wire(block)


def _seal(end: ChainState, model: Model, text: str) -> ThinkingSeal:
    return ThinkingSeal(make_model_key(model), end.prefix, end.predecessor, text)


def render_block_wire(block: Block) -> JsonObject:
    """A block's frozen wire form."""
    return JsonObject({key: freeze(value) for key, value in write_block(block).items()})


def _holds(seal: ThinkingSeal, end: ChainState) -> bool:
    if seal.prefix != end.prefix:
        return False
    # A leading run of thinking may be left out: then nothing precedes, whatever the seal says.
    return end.predecessor in {NO_PREDECESSOR, seal.predecessor}


def _latest_turn(blocks: Sequence[PromptBlock]) -> int:
    return next((block.turn for block in reversed(blocks) if block.role == "assistant"), -1)
