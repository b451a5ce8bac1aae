"""Extraction without a model, over a conversation: turns become statements, statements memories, and each
goes through the gate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from sevenfold.core.events import DraftRefused, Emit
from sevenfold.core.messages import Message, Text
from sevenfold.core.text.stems import find_content_stems
from sevenfold.layers.memory.extraction.gate import (
    AdmittedDraft,
    GateContext,
    KnownMemory,
    MemoryDraft,
    RefusedDraft,
    check_draft,
    choose_free_slug,
    merge_uncontradicted,
)
from sevenfold.layers.memory.extraction.policy import extract_user_words
from sevenfold.layers.memory.extraction.statements import find_amended_subject
from sevenfold.layers.memory.extraction.tools import MemorySnapshot
from sevenfold.layers.memory.extraction.topics import (
    Topic,
    UserTurn,
    apply_turn,
    render_topic,
    retarget_topic,
)
from sevenfold.layers.memory.trust.taint import ConversationSources

SUBJECT_WEIGHT = 3
"""How often what an amendment says that it amends is counted, in a search that takes no weights."""
AMENDED_WORDS = 4
"""Words that an amendment and what it amends have to share: fewer, and it is about something else."""


@dataclass(frozen=True, slots=True)
class RecordedMessage:
    """A message of the history and the id of its record."""

    id: str
    message: Message


@dataclass(frozen=True, slots=True)
class ConversationSnapshot:
    """A conversation when a turn has ended."""

    history: Sequence[RecordedMessage]
    view: Sequence[Message]
    """What a model is shown of it now, with all that was put beside it."""


@dataclass(slots=True)
class ExtractionRun:
    """The result of one search."""

    topic: Topic
    admitted: dict[str, AdmittedDraft] = field(default_factory=dict[str, AdmittedDraft])
    refused: int = 0


class StatementReader:
    """Reads what a user stated. Does no I/O, and takes a while on a long conversation."""

    def __init__(self, session: str, shelf: MemorySnapshot, emit: Emit) -> None:
        self._session, self._shelf, self._emit = session, shelf, emit

    def read(
        self, ground: GateContext, heard: ConversationSnapshot, new: Sequence[RecordedMessage], topic: Topic
    ) -> ExtractionRun:
        """What the new messages teach, after what the conversation had decided before."""
        run = ExtractionRun(topic)
        for said in _turns(heard.history, new):
            learnt = apply_turn(run.topic, said)
            run.topic = learnt.topic
            for draft in learnt.alone:
                self._admit(run, draft, ground)
            if learnt.has_decided:
                amended = self._find_amended(said, run.topic) if learnt.amends else None
                self._admit_topic(run, ground, amended)
        return run

    def _admit_topic(self, run: ExtractionRun, ground: GateContext, amended: KnownMemory | None) -> None:
        if amended is not None:
            run.topic = retarget_topic(run.topic, amended.memory)
        elif (there := self._shelf.find(run.topic.key)) and not _is_kin(run.topic, there):
            slug = choose_free_slug(run.topic.key.removesuffix(".md"), ground.keys)
            run.topic = replace(run.topic, key=f"{slug}.md")
        run.topic = _trimmed(run.topic, ground.witnesses)
        if not run.topic.statements and not run.topic.recap:
            return
        draft = render_topic(run.topic)
        found = check_draft(draft, ground, may_drop=True)
        if isinstance(found, RefusedDraft) and found.rule == "contradicts":
            other = self._shelf.find(found.other)
            run.topic = retarget_topic(run.topic, other.memory) if other else run.topic
            draft = render_topic(run.topic)
        self._admit(run, draft, ground)

    def _admit(self, run: ExtractionRun, draft: MemoryDraft, ground: GateContext) -> None:
        found = check_draft(draft, ground, may_drop=True)
        if isinstance(found, RefusedDraft) and found.rule == "contradicts":
            # The user said it just now: it takes the old one's place, whose text stays in history.
            other = self._shelf.find(found.other)
            amended = merge_uncontradicted(draft, other.memory) if other else draft
            found = check_draft(amended, ground, may_drop=True)
        elif isinstance(found, RefusedDraft) and found.rule == "other topic":
            slug = choose_free_slug(draft.key.removesuffix(".md"), ground.keys)
            found = check_draft(replace(draft, key=f"{slug}.md", name=slug), ground, may_drop=True)
        if isinstance(found, AdmittedDraft):
            run.admitted[found.key] = found
            return
        run.refused += 1
        if found.rule != "unchanged":
            self._emit(DraftRefused(self._session, found.key, found.rule, found.reason))

    def _find_amended(self, said: UserTurn, topic: Topic) -> KnownMemory | None:
        """The decision that an amendment speaks of: the one most like it, if it is like it at all."""
        subject = find_amended_subject(said.own)
        # What it says that it amends counts for more than why.
        text = "\n".join([subject] * SUBJECT_WEIGHT + [said.own, said.answer])
        words = find_content_stems(text)
        for known in self._shelf.near(text):
            memory = known.memory
            shared = words & find_content_stems(f"{memory.description}\n{memory.body}")
            if memory.kind == "project" and memory.key != topic.key and len(shared) >= AMENDED_WORDS:
                return known
        return None


def _turns(history: Sequence[RecordedMessage], new: Sequence[RecordedMessage]) -> Iterator[UserTurn]:
    """What the user said in each new turn, what the assistant had said before, and said to it."""
    before = _last_said(spoken.message for spoken in history[: len(history) - len(new)])
    own = ""
    answer = ""
    for spoken in new:
        words = extract_user_words(spoken.message)
        if words and own:
            yield UserTurn(before, own, answer)
            before, answer = answer or before, ""
        own = words or own
        answer = _text_of(spoken.message) or answer
    if own:
        yield UserTurn(before, own, answer)


def _last_said(messages: Iterable[Message]) -> str:
    return next((text for message in reversed(list(messages)) if (text := _text_of(message))), "")


def _text_of(message: Message) -> str:
    if message.role != "assistant":
        return ""
    return "\n\n".join(block.text for block in message.blocks if isinstance(block, Text))


def _trimmed(topic: Topic, witnesses: ConversationSources) -> Topic:
    """Without what holds more than the user's own words, where a stranger may have said it."""
    if not witnesses.taints:
        return topic
    recap = "" if witnesses.judge(topic.recap).taint else topic.recap
    own = tuple(text for text in topic.statements if not witnesses.judge(text).taint)
    return replace(topic, recap=recap, statements=own)


def _is_kin(topic: Topic, there: KnownMemory) -> bool:
    memory = there.memory
    shared = topic.words & find_content_stems(f"{memory.description}\n{memory.body}")
    return len(shared) >= AMENDED_WORDS
