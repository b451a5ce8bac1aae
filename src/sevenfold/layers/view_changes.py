"""Messages of a view as another model takes them, and where two views begin to differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sevenfold.core.messages import Message, without_message_compaction, without_message_thinking
from sevenfold.core.requests import ENGINE_ENTRY, Capabilities, ViewMessage


def adapt_messages(
    items: Iterable[ViewMessage], capabilities: Capabilities, *, drops_thinking: bool
) -> list[ViewMessage]:
    """The same items as this model takes them."""
    return [_adapt(item, capabilities, drops_thinking=drops_thinking) for item in items]


def _adapt(item: ViewMessage, capabilities: Capabilities, *, drops_thinking: bool) -> ViewMessage:
    message = without_message_thinking(item.message) if drops_thinking else item.message
    if item.entry == ENGINE_ENTRY and not capabilities.compacts_on_demand:
        message = without_message_compaction(message)
    return item if message is item.message else replace(item, message=message)


def find_first_change(before: Sequence[Message], after: Sequence[Message]) -> int | None:
    """The first place where two views differ; None where the second only goes on."""
    for index, message in enumerate(before):
        if index >= len(after) or after[index] is not message:
            return index
    return None
