"""Content blocks: known types, in messages of the right role, with the fields they need.

`check_thinking` checks thinking blocks that a client sends back against what they are bound to: a block is
kept, dropped, or the reason for a 400.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sevenfold.core.cache.prompt_blocks import THINKING_TYPES, PromptBlock
from sevenfold.core.json import Json, JsonObject, freeze
from sevenfold.core.messages import Block, RedactedThinking, Thinking, write_block
from sevenfold.core.models import Model
from sevenfold.simulator.wire.choices import Choices
from sevenfold.simulator.wire.error_response import (
    as_list,
    as_object,
    as_one_of,
    as_text,
    make_invalid_request,
    require_field,
)
from sevenfold.simulator.wire.messages_request import NEWER, MessagesRequest, is_thinking_block
from sevenfold.simulator.wire.models import (
    COMPACT_ON_DEMAND_BETA,
    COMPACT_THRESHOLD_BETA,
    INLINE_TOOLS_BETA,
    THINKING_BINDING_BETA,
    TOOL_CHANGES_BETA,
)
from sevenfold.simulator.wire.signatures import (
    NO_PREDECESSOR,
    BindingChain,
    ChainState,
    ThinkingSeal,
    get_signature,
    make_model_key,
    parse_thinking_seal,
)

# Sources of images and documents, and blocks that contain others.
IMAGE_MEDIA_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
REQUIRED_TEXT_FIELDS: Mapping[str, tuple[str, ...]] = {
    "text": ("text",),
    "thinking": ("thinking", "signature"),
    "redacted_thinking": ("data",),
    "tool_use": ("id", "name"),
    "server_tool_use": ("id", "name"),
    "mcp_tool_use": ("id", "name", "server_name"),
    "tool_result": ("tool_use_id",),
    "search_result": ("source", "title"),
    "container_upload": ("file_id",),
    "tool_reference": ("tool_name",),
}
"""Fields that a block of each type must have, all of them text."""

TOOL_REQUEST_TYPES = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
RESULT_CONTENT_TYPES = frozenset({"text", "image", "document", "search_result", "tool_reference"})
"""What a tool result may hold."""
DOCUMENT_CONTENT_TYPES = frozenset({"text", "image"})

_Check: TypeAlias = Callable[[str, JsonObject], None]


def check_block_fields(path: str, kind: str, block: JsonObject) -> None:
    """Refuse a block that lacks what its type needs. `path` is the block's own."""
    own = f"{path}.{kind}"
    for key in REQUIRED_TEXT_FIELDS.get(kind, ()):
        as_text(f"{own}.{key}", require_field(own, block, key))
    if kind in TOOL_REQUEST_TYPES:
        as_object(f"{own}.input", require_field(own, block, "input"))
    elif kind in _SOURCES:
        _check_source(own, _SOURCES[kind], block)
    elif kind == "tool_result":
        _check_content(f"{own}.content", block.get("content"), RESULT_CONTENT_TYPES)
    elif kind == "search_result":
        content = require_field(own, block, "content")
        _check_content(f"{own}.content", as_list(f"{own}.content", content), frozenset({"text"}))


def _check_source(path: str, kinds: Mapping[str, _Check], block: JsonObject) -> None:
    source = as_object(f"{path}.source", require_field(path, block, "source"))
    kind = as_one_of(f"{path}.source.type", require_field(f"{path}.source", source, "type"), tuple(kinds))
    kinds[kind](f"{path}.source.{kind}", source)


def _check_content(path: str, content: Json, allowed: frozenset[str]) -> None:
    """Text, or blocks of some types."""
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, tuple):
        raise make_invalid_request(f"{path}: Input should be a valid string or list")
    for index, item in enumerate(content):
        inner = f"{path}.{index}"
        block = as_object(inner, item)
        kind = as_one_of(f"{inner}.type", require_field(inner, block, "type"), sorted(allowed))
        check_block_fields(inner, kind, block)


def _bytes(*media: str) -> _Check:
    def check(path: str, source: JsonObject) -> None:
        as_one_of(f"{path}.media_type", require_field(path, source, "media_type"), media)
        if not as_text(f"{path}.data", require_field(path, source, "data")):
            raise make_invalid_request(f"{path}.data: must not be empty")

    return check


def _text(key: str) -> _Check:
    def check(path: str, source: JsonObject) -> None:
        as_text(f"{path}.{key}", require_field(path, source, key))

    return check


def _blocks(path: str, source: JsonObject) -> None:
    _check_content(f"{path}.content", require_field(path, source, "content"), DOCUMENT_CONTENT_TYPES)


_SOURCES: Mapping[str, Mapping[str, _Check]] = {
    "image": {"base64": _bytes(*IMAGE_MEDIA_TYPES), "url": _text("url"), "file": _text("file_id")},
    "document": {
        "base64": _bytes("application/pdf"),
        "text": _bytes("text/plain"),
        "content": _blocks,
        "url": _text("url"),
        "file": _text("file_id"),
    },
}


SERVER_RESULT_TYPES = frozenset(
    {
        *("web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result"),
        *("bash_code_execution_tool_result", "text_editor_code_execution_tool_result"),
        *("tool_search_tool_result", "mcp_tool_result", "advisor_tool_result"),
    }
)
"""What the provider's own tools answered: it stands in the assistant's message."""

USER_BLOCK_TYPES = frozenset(
    {"text", "image", "document", "search_result", "tool_result", "container_upload"}
)
ASSISTANT_BLOCK_TYPES = frozenset(
    {
        *("text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "compaction", "document"),
        *("container_upload", "mcp_tool_use", "mcp_tool_listing", "fallback", *SERVER_RESULT_TYPES),
    }
)
SYSTEM_BLOCK_TYPES = frozenset({"text", "tool_addition", "tool_removal"})
ROLE_BLOCK_TYPES: Mapping[str, frozenset[str]] = {
    "user": USER_BLOCK_TYPES,
    "assistant": ASSISTANT_BLOCK_TYPES,
    "system": SYSTEM_BLOCK_TYPES,
}
KNOWN_BLOCK_TYPES = USER_BLOCK_TYPES | ASSISTANT_BLOCK_TYPES | SYSTEM_BLOCK_TYPES


def check_block(call: MessagesRequest, role: str, path: str, block: JsonObject) -> None:
    kind = as_text(f"{path}.type", require_field(path, block, "type"))
    if kind not in KNOWN_BLOCK_TYPES:
        raise make_invalid_request(
            f"{path}: Input tag '{kind}' found using 'type' does not match any of the expected tags"
        )
    if kind not in ROLE_BLOCK_TYPES[role]:
        code = "compaction_block_misplaced" if kind == "compaction" else None
        raise make_invalid_request(f"{path}: `{kind}` blocks are not allowed in {role} messages", code)
    check_block_fields(path, kind, block)
    if kind in SERVER_RESULT_TYPES:
        own = f"{path}.{kind}"
        as_text(f"{own}.tool_use_id", require_field(own, block, "tool_use_id"))
        require_field(own, block, "content")
    if call.envelope.version == NEWER:
        _check_newer(role, path, kind, block)
    if kind == "compaction":
        _check_compaction(call, path, block)
    if role == "system":
        _check_tool_change(call, path, kind, block)


def _check_newer(role: str, path: str, kind: str, block: JsonObject) -> None:
    """What the 2026-10-21 version refuses and the one before took."""
    if role == "assistant" and kind == "document":
        raise make_invalid_request(
            f"{path}: `document` blocks are not allowed in assistant messages in version {NEWER}"
        )
    if role == "user" and kind == "text" and block.get("citations"):
        raise make_invalid_request(
            f"{path}.citations: not allowed on text in user messages in version {NEWER}"
        )


def _check_compaction(call: MessagesRequest, path: str, block: JsonObject) -> None:
    beta = COMPACT_ON_DEMAND_BETA if block.get("signature") is not None else COMPACT_THRESHOLD_BETA
    if not call.has(beta) and not (beta == COMPACT_THRESHOLD_BETA and call.has(COMPACT_ON_DEMAND_BETA)):
        raise make_invalid_request(f"{path}: `compaction` blocks need the `anthropic-beta: {beta}` header")
    content = block.get("content")
    if content is not None and not as_text(f"{path}.content", content):
        raise make_invalid_request(
            f"{path}.content: must not be empty; send null for a compaction that failed"
        )


def _check_tool_change(call: MessagesRequest, path: str, kind: str, block: JsonObject) -> None:
    if kind == "text":
        return
    tool = as_object(f"{path}.tool", require_field(path, block, "tool"))
    by_value = tool.get("type") == "tool_definition"
    beta = INLINE_TOOLS_BETA if by_value else TOOL_CHANGES_BETA
    if not call.has(beta):
        raise make_invalid_request(f"{path}: `{kind}` blocks need the `anthropic-beta: {beta}` header")
    if by_value:
        as_object(f"{path}.tool.definition", require_field(f"{path}.tool", tool, "definition"))
        return
    name = as_text(f"{path}.tool.name", require_field(f"{path}.tool", tool, "name"))
    declared = call.body.get("tools")
    names = (
        {item.get("name") for item in declared if isinstance(item, JsonObject)}
        if isinstance(declared, tuple)
        else set[Json]()
    )
    if name not in names:
        raise make_invalid_request(
            f"{path}.tool.name: '{name}' is not defined in `tools`; declare it with defer_loading",
            "tool_reference_unresolved",
        )


# Thinking blocks that a client sends back.

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
    return call.has(THINKING_BINDING_BETA)


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
        message = (
            f"{block.path}: Invalid `signature` in `{block.kind}` block. The block is bound to a different "
            f"conversation. {_OPT_OUT}"
        )
        if not self._call.has(THINKING_BINDING_BETA):
            message += f" This needs the `anthropic-beta: {THINKING_BINDING_BETA}` header."
        return make_invalid_request(message)


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
