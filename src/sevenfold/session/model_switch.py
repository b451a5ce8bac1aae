"""A view under another frame: what the model it goes to now could not take is taken out or spelled out.

Thinking is signed over the model, the system prompt and the tools. Where the provider checks
the signature, a change of any of them invalidates all thinking. Only models that make compaction blocks read
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sevenfold.core.canonical import Digest, canonical_bytes, digest, strip_cache_control
from sevenfold.core.capabilities import Capabilities
from sevenfold.core.messages import Message
from sevenfold.core.requests import RequestParams
from sevenfold.core.view import ENGINE_ENTRY, ViewMessage
from sevenfold.layers.compaction.strip import without_compaction_blocks, without_thinking

PARAMS_CHANGED = "the caller changed the model, the system prompt or the tools"


def compute_thinking_binding(frame: RequestParams) -> Digest:
    """What thinking is bound to beside the messages. Cache markers and the order of tools do not count."""
    system = (frame.system,) if isinstance(frame.system, str) else [part.get("text") for part in frame.system]
    tools = {str(tool.get("name") or tool.get("type")): strip_cache_control(tool) for tool in frame.tools}
    texts = [text.strip() for text in system if isinstance(text, str) and text.strip()]
    return digest(canonical_bytes({"model": frame.model, "system": texts, "tools": tools}))


def adapt_messages(
    items: Sequence[ViewMessage], capabilities: Capabilities, *, drops_thinking: bool
) -> list[ViewMessage]:
    """The same items as this model takes them."""
    return [_adapted(item, capabilities, drops_thinking=drops_thinking) for item in items]


def without_message_thinking(message: Message) -> Message:
    """The message with no thinking in it; one that was nothing else says so, for none may be empty."""
    return without_thinking((message,))[0]


def find_first_change(before: Sequence[Message], after: Sequence[Message]) -> int | None:
    """The first place where two views differ; None where the second only goes on."""
    for index, message in enumerate(before):
        if index >= len(after) or after[index] is not message:
            return index
    return None


def _adapted(item: ViewMessage, capabilities: Capabilities, *, drops_thinking: bool) -> ViewMessage:
    message = without_message_thinking(item.message) if drops_thinking else item.message
    if item.entry == ENGINE_ENTRY and not capabilities.compacts_on_demand:
        message = without_compaction_blocks((message,))[0]
    return item if message is item.message else replace(item, message=message)
