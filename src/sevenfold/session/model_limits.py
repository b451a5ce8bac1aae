"""What the model of a session accepts: how long a prompt may be, and which messages.

`WindowPlan` has the window and its thresholds. `ViewNormalizer` repairs what the provider would refuse, and
reports each repair. `adapt_messages` rewrites a view after the caller changed the model, the system prompt or
the tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sevenfold.core.canonical import Digest, canonical_bytes, digest, strip_cache_control
from sevenfold.core.events import Emit, HistoryRepaired
from sevenfold.core.messages import Message
from sevenfold.core.models import Model
from sevenfold.core.normalize import NO_SOURCE, MessageNormalizer, NormalizedMessages, NormalizeRules
from sevenfold.core.requests import Capabilities, RequestParams
from sevenfold.core.tokens import Thresholds, WindowFacts, choose_window, narrow_thresholds, plan_thresholds
from sevenfold.core.view import ENGINE_ENTRY, ViewMessage
from sevenfold.layers.compaction.trim import without_compaction_blocks, without_thinking
from sevenfold.session.settings import PipelineSettings


class WindowPlan:
    """The window of the model in use: by the catalogue, the settings, and what its provider has said."""

    __slots__ = ("_frame", "_model", "_settings", "learned", "thresholds", "tokens")

    def __init__(self, settings: PipelineSettings, frame: RequestParams, model: Model) -> None:
        self._settings = settings
        self.learned: dict[str, int] = {}
        """What providers have said they take at most, by model, in tokens as they are counted here."""
        self.tokens: int
        self.thresholds: Thresholds
        self.use(frame, model)

    def use(self, frame: RequestParams, model: Model) -> None:
        self._frame, self._model = frame, model
        settings, learned = self._settings, self.learned.get(frame.model)
        self.tokens = choose_window(frame.model, model, frame.betas, settings.window)
        facts = WindowFacts(
            self.tokens,
            model.max_output_tokens,
            settings.compact.is_automatic,
            settings.compact.auto_compact_pct,
        )
        self.thresholds = plan_thresholds(facts, settings.window)
        if learned is not None:
            self.tokens = min(self.tokens, learned)
            self.thresholds = narrow_thresholds(self.thresholds, learned)

    def learn(self, model: str, limit_tokens: int) -> None:
        """The provider of this model takes no longer prompts than this, whatever the catalogue says."""
        self.learned[model] = limit_tokens
        self.use(self._frame, self._model)


@dataclass(frozen=True, slots=True)
class NormalizedMessage:
    """A message as it goes into the view."""

    message: Message
    entry: int
    """Which message of the history it shows; `ENGINE_ENTRY` for one of our own."""
    source: int
    """Which of the messages handed in, from the last start; `NO_SOURCE` if it was none of them."""


class ViewNormalizer:
    """Shapes one view as it grows."""

    def __init__(self, rules: NormalizeRules, emit: Emit) -> None:
        self.rules, self._emit = rules, emit
        self._flattener = MessageNormalizer(rules)
        self._entries: list[int] = []

    @property
    def last(self) -> int:
        """The source of the message that was handed in last."""
        return len(self._entries) - 1

    def add(self, message: Message, entry: int) -> list[NormalizedMessage]:
        """The next message; what it becomes, and what has to stand before it."""
        self._entries.append(entry)
        return list(self._told(self._flattener.add((message,))))

    def finish(self) -> list[NormalizedMessage]:
        """What has to follow for a request to be sent now."""
        return list(self._told(self._flattener.finish()))

    def start_over(self, messages: Sequence[Message], entries: Sequence[int]) -> list[NormalizedMessage]:
        """Another view, from its beginning."""
        self._flattener, self._entries = MessageNormalizer(self.rules), list(entries)
        return list(self._told(self._flattener.add(messages)))

    def _told(self, flat: NormalizedMessages) -> Iterator[NormalizedMessage]:
        for repair in flat.repairs:
            self._emit(HistoryRepaired(repair.message, repair.kind, repair.detail))
        for message, source in zip(flat.messages, flat.sources, strict=True):
            yield NormalizedMessage(
                message, ENGINE_ENTRY if source == NO_SOURCE else self._entries[source], source
            )


# Thinking is signed over the model, the system prompt and the tools: where the provider checks the signature,
# any change of them invalidates all thinking. Only models that make compaction blocks read them.

PARAMS_CHANGED = "the caller changed the model, the system prompt or the tools"


def compute_thinking_binding(frame: RequestParams) -> Digest:
    """What thinking is bound to besides the messages. Breakpoints and the order of tools do not count."""
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
