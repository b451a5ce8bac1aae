"""What a compaction is asked to do, and what comes of it, as values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sevenfold.core.capabilities import Capabilities
from sevenfold.core.messages import Message
from sevenfold.core.requests import ModelRequest, ModelResponse
from sevenfold.core.tokens.estimators import WeighBlock
from sevenfold.layers.compaction.policy import CompactionStrategy, CompactionTrigger
from sevenfold.layers.compaction.restore_policy import Extra

SpillText: TypeAlias = Callable[[str, str], str | None]
"""Stores text under a name and returns the path to read it by; None where it could not be stored. Called in a
thread; the same name and text may come again."""


def skip_spill(_name: str, _text: str) -> str | None:
    """For callers without a session's folder: what is long is then cut, and only the transcript holds it."""
    return None


@dataclass(frozen=True, slots=True)
class CompactionNotes:
    """The session's notes, which may stand in for what they cover."""

    text: str | None = None
    """As they stand in the file; None: there is none."""
    noted: int | None = None
    """The message of the view that is the last they cover; None: it is not among them."""
    template: str = ""
    """What the file holds before anything was noted."""


NO_NOTES = CompactionNotes()


@dataclass(frozen=True, slots=True)
class Part:
    """A compaction of a part of the view."""

    side: Literal["from", "up_to"]
    """`from`: what follows is summarised and the beginning stays; `up_to`: the other way round."""
    index: int
    """A message of the view. It is moved back to the beginning of its round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionJob:
    request: ModelRequest
    """The whole view as it would be sent now."""
    tokens_before: int
    target: int
    """The view must end up below this: the point of automatic compaction."""
    counts: Sequence[int]
    """Tokens of each message of the view."""
    capabilities: Capabilities
    weigh: WeighBlock | None = None
    """Tokens of a block that is not in the view, by the same measure as `counts`; None: by an estimate that
    no usage has corrected."""
    frame_tokens: int | None = None
    """Of what stands before the messages; None: what `counts` leave of `tokens_before`."""
    trigger: CompactionTrigger = "auto"
    overshoot: int | None = None
    """Of a reactive compaction: by how many tokens the provider said the prompt is too long."""
    window_tokens: int | None = None
    """What a request may have in all; None: not known."""
    instructions: str = ""
    """What the summary should look at, in a user's words: notes that were written before cannot."""
    hook_text: str = ""
    """What hooks add to that. Notes may serve all the same: hooks speak every time."""
    part: Part | None = None
    notes: CompactionNotes = NO_NOTES
    structural: str = ""
    """The structural notes of the whole session: what a summary is when no model writes one."""
    held: int | None = None
    """So many messages at the beginning stood in the last request that was answered; None: all."""
    is_warm: bool = True
    """Whether the provider's cache still holds the prefix."""
    attachments: frozenset[int] = frozenset()
    """Messages of the view on the user's side that no person wrote."""
    transcript: str = ""
    """Where the whole history can be read."""
    spill: SpillText = skip_spill
    files_seen: tuple[str, ...] | None = None
    """Paths the agent has read, newest first; None: those that the view shows."""
    folder: str = ""
    """What relative paths among them start from."""
    barred_files: frozenset[str] = frozenset()
    """Paths never restored: the plan, instruction files. The transcript is barred anyway."""
    extras: tuple[Extra, ...] = ()
    """What else is put back after it: skills (newest first), plan, todo list, …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """The new view: `head`, then `kept`."""

    rung: CompactionStrategy
    trigger: CompactionTrigger
    head: tuple[Message, ...]
    """The summary and what was restored; of a part `from` a message, all that stood before it too."""
    kept_from: int
    """Messages of the request from here on are kept; its length where none are."""
    kept: tuple[Message, ...]
    """Those messages: the same objects, unless thinking or an overlong result had to be dropped from them."""
    tokens_before: int
    tokens_after: int
    """An estimate."""
    summary: str
    """Alone, without what the engine put around it."""
    replies: tuple[ModelResponse, ...] = ()
    """Every answer that was paid for on the way, to be booked under `summary`."""
    betas: tuple[str, ...] = ()
    """Headers that every later request needs which carries this head."""
    calls: int = 0
    """Model calls that were made, failed ones included."""
    before: int = 0
    """So many messages at the beginning of `head` are the old view's own: of a part `from` a message."""

    @property
    def view(self) -> tuple[Message, ...]:
        return self.head + self.kept
