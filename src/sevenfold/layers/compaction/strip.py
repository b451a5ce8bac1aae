"""Messages with less in them: without thinking, without media, with results cut short. Never in place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from sevenfold.core.messages import (
    Block,
    Compaction,
    Document,
    Image,
    Message,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
)
from sevenfold.core.text.truncation import truncate_lines

_RESTORED = ("<restored-file ", "<restored ")
"""How blocks begin that a compaction put back into view."""

IMAGE_PLACEHOLDER, DOCUMENT_PLACEHOLDER = "[image]", "[document]"
THINKING_PLACEHOLDER = "[thinking]"
"""For an answer that was thinking alone: a message must say something."""


def without_thinking(messages: Iterable[Message]) -> tuple[Message, ...]:
    """All thinking dropped; a message that had none is the same object."""
    return tuple(_rewritten(message, _drop_thinking) for message in messages)


def without_media(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Images and documents as a word each, inside tool results too."""
    return tuple(_rewritten(message, _name_media) for message in messages)


def without_first_image(messages: Sequence[Message], held: int) -> tuple[Message, ...]:
    """The same, but where the first image stands after those that the last request held, it and what follows
    are named: with it nothing of what is cached could be read."""
    if any(map(_shows_image, messages[:held])) or not any(map(_shows_image, messages[held:])):
        return tuple(messages)
    return (*messages[:held], *without_media(messages[held:]))


def without_compaction_blocks(messages: Iterable[Message]) -> tuple[Message, ...]:
    """A provider's compaction block as the user's text, for a request that cannot carry it."""
    return tuple(
        replace(message, role="user", content=tuple(_spell_summary(block) for block in message.blocks))
        if any(isinstance(block, Compaction) for block in message.blocks)
        else message
        for message in messages
    )


def without_restored(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Without what an earlier compaction put back: it is put back again, as it is then."""

    def drop(block: Block) -> Block | None:
        is_restored = isinstance(block, Text) and block.text.startswith(_RESTORED)
        return None if is_restored else block

    return tuple(_rewritten(message, drop) if message.role == "user" else message for message in messages)


def without_system_role(messages: Iterable[Message]) -> tuple[Message, ...]:
    """System messages in mid-conversation as the user's text, for a model that takes none."""
    return tuple(replace(item, role="user") if item.role == "system" else item for item in messages)


def with_short_results(messages: Iterable[Message], max_bytes: int, pointer: str) -> tuple[Message, ...]:
    """Every tool result cut to its beginning, with a word on where the rest is."""

    def cut(block: Block) -> Block | None:
        if not isinstance(block, ToolResult):
            return block
        text = _result_text(block)
        shown = truncate_lines(text, max_bytes)
        if len(shown) == len(text):
            return block
        return replace(
            block, content=f"{shown}\n[cut here, {len(text) - len(shown):,} characters; {pointer}]"
        )

    return tuple(_rewritten(message, cut) for message in messages)


def ensure_user_first(messages: Sequence[Message], opening: str) -> tuple[Message, ...]:
    """The same with a user's message first, as the API wants it."""
    if messages and messages[0].role == "user":
        return tuple(messages)
    return (Message("user", opening), *messages)


def _rewritten(message: Message, change: Callable[[Block], Block | None]) -> Message:
    if isinstance(message.content, str):
        return message
    changed = [change(block) for block in message.content]
    if all(new is old for new, old in zip(changed, message.content, strict=True)):
        return message
    left = tuple(block for block in changed if block is not None)
    return replace(message, content=left or (Text(THINKING_PLACEHOLDER),))


def _drop_thinking(block: Block) -> Block | None:
    return None if isinstance(block, (Thinking, RedactedThinking)) else block


def _name_media(block: Block) -> Block:
    match block:
        case Image():
            return Text(IMAGE_PLACEHOLDER)
        case Document():
            return Text(DOCUMENT_PLACEHOLDER)
        case ToolResult() if isinstance(block.content, tuple):
            inner = tuple(_name_media(item) for item in block.content)
            same = all(new is old for new, old in zip(inner, block.content, strict=True))
            return block if same else replace(block, content=inner)
        case _:
            return block


def _shows_image(message: Message) -> bool:
    inner = (block.content if isinstance(block, ToolResult) else (block,) for block in message.blocks)
    return any(isinstance(item, Image) for items in inner if isinstance(items, tuple) for item in items)


def _spell_summary(block: Block) -> Block:
    return Text(block.content or THINKING_PLACEHOLDER) if isinstance(block, Compaction) else block


def _result_text(result: ToolResult) -> str:
    content = result.content
    if isinstance(content, tuple):
        return "\n".join(_inner_text(item) for item in content)
    return content or ""


def _inner_text(block: Block) -> str:
    named = _name_media(block)
    return named.text if isinstance(named, Text) else f"[{type(block).__name__.lower()}]"
