"""Statements become memories: one for each that stands for itself, and one for what a conversation decided,
which grows turn by turn. An amendment takes the place of what it amends; history keeps that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sevenfold.core.memories import Memory
from sevenfold.core.text.facts import covers_fact, parse_fact
from sevenfold.core.text.stems import find_content_stems, make_slug, split_sentences, truncate_words
from sevenfold.layers.memory.extraction.gate import MAX_DRAFT_DESCRIPTION_CHARS, MemoryDraft
from sevenfold.layers.memory.extraction.statements import (
    Statement,
    StatementKind,
    find_answer,
    find_recap,
    find_statements,
    is_agreement,
    is_response,
)

OPENING_CHARS = 320
RECAP_CHARS = 1_500
MAX_STATEMENTS = 24
"""Of one topic. A conversation that decides more has decided on several things."""
SAME_TOPIC_SHARE = 0.15
"""Of a turn's words that the topic, or what the assistant said of it, has too: then it goes on with it."""
SHORT_ANSWER_WORDS = 6
"""Words that mean something. Fewer are an answer: nobody begins another matter with less."""

_WHY = "**Why:** "
AGREED_LABEL = "**Agreed wording:** "
EARLIER_LABEL = "**Before this amendment, where the above does not change it:**"

_ALONE: dict[StatementKind, str] = {"rule": "feedback", "about you": "user", "pointer": "reference"}


@dataclass(frozen=True, slots=True)
class UserTurn:
    """One turn."""

    before: str
    """What the assistant said last before it."""
    own: str
    """The user's own words."""
    answer: str = ""
    """What the assistant said last in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """What a conversation is deciding on."""

    opening: str = ""
    """How the user put the matter."""
    key: str = ""
    """The memory it is kept in; empty: nothing was decided yet."""
    statements: tuple[str, ...] = ()
    recap: str = ""
    is_amendment: bool = False
    earlier: tuple[str, ...] = ()
    """What the memory said before an amendment."""

    @property
    def words(self) -> frozenset[str]:
        return find_content_stems("\n".join((self.opening, *self.statements, self.recap)))


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """What a turn results in."""

    topic: Topic
    alone: tuple[MemoryDraft, ...] = ()
    """Statements that stand for themselves."""
    has_decided: bool = False
    """The topic says something that it did not say before: `render_topic` is its memory."""
    amends: bool = False
    """It changes a decision of another conversation: a caller that knows which uses `retarget_topic`."""


def apply_turn(topic: Topic, said: UserTurn) -> TurnOutcome:
    """What the user stated in a turn, and the topic as it stands after it."""
    statements = find_statements(said.own, is_answer=bool(said.before))
    lasting = tuple(item for item in statements if item.kind in ("asked", *_ALONE))
    decided = [item for item in statements if item not in lasting]
    if not decided and (answer := find_answer(said.before, said.own)):
        decided = [Statement("decision", answer)]
    alone = tuple(_draft_alone(item) for item in lasting)
    if not _goes_on(topic, said):
        topic = Topic(opening=_opening(said.own))
    is_agreed = is_agreement(said.own)
    recap = find_recap(said.answer) or (find_recap(said.before) if is_agreed else "")
    if not decided and not (recap and (topic.key or is_agreed)):
        return TurnOutcome(topic, alone)
    is_amendment = any(item.kind == "amendment" for item in decided)
    if is_amendment and not topic.is_amendment:
        topic = replace(topic, is_amendment=True, earlier=topic.statements, statements=(), recap="")
    grown = replace(
        topic,
        statements=_joined(topic.statements, decided),
        recap=truncate_words(recap, RECAP_CHARS) or topic.recap,
    )
    named = grown if grown.key else replace(grown, key=f"{make_slug(grown.opening)}.md")
    return TurnOutcome(named, alone, has_decided=True, amends=is_amendment and not topic.key)


def retarget_topic(topic: Topic, memory: Memory) -> Topic:
    """The topic as an amendment of a memory that is there."""
    earlier = tuple(_bullets(memory.body))
    return replace(topic, key=memory.key, is_amendment=True, earlier=earlier)


def render_topic(topic: Topic) -> MemoryDraft:
    """The memory of what was decided. A full recap says all that still holds; without one, what was said
    before an amendment stands below it."""
    parts = ["\n".join(f"- {text}" for text in topic.statements)] if topic.statements else []
    if topic.recap:
        parts.append(f"{AGREED_LABEL}{topic.recap}")
    if topic.opening and not _is_covered(topic.opening, topic.statements):
        parts.append(f"{_WHY}{topic.opening}")
    if topic.earlier and not topic.recap:
        kept = [text for text in topic.earlier if not _is_covered(text, topic.statements)]
        parts += [EARLIER_LABEL + "\n" + "\n".join(f"- {text}" for text in kept)] if kept else []
    described = next(iter(split_sentences(topic.opening or "\n".join(parts))), topic.key)
    name = topic.key.rpartition("/")[2].removesuffix(".md")
    return MemoryDraft(
        key=topic.key,
        name=name,
        description=truncate_words(described, MAX_DRAFT_DESCRIPTION_CHARS),
        kind="project",
        body="\n\n".join(parts),
    )


def _draft_alone(item: Statement) -> MemoryDraft:
    kind = _ALONE.get(item.kind) or _guessed(item.text)
    slug = make_slug(item.text)
    return MemoryDraft(
        key=f"{slug}.md",
        name=slug,
        description=truncate_words(item.text, MAX_DRAFT_DESCRIPTION_CHARS),
        kind=kind,
        body=item.text,
    )


def _guessed(text: str) -> str:
    """What kind of thing somebody asked to remember."""
    found = find_statements(text)
    return _ALONE.get(found[0].kind, "project") if found else "project"


def _goes_on(topic: Topic, said: UserTurn) -> bool:
    """Whether a turn is about the topic, or answers what was said about it."""
    if not topic.opening:
        return False
    words = find_content_stems(said.own)
    if len(words) < SHORT_ANSWER_WORDS or is_response(said.own) or said.before.rstrip().endswith("?"):
        return True
    return len(words & (topic.words | find_content_stems(said.before))) >= SAME_TOPIC_SHARE * len(words)


def _opening(own: str) -> str:
    return truncate_words(" ".join(split_sentences(own)), OPENING_CHARS)


def _joined(statements: tuple[str, ...], fresh: Sequence[Statement]) -> tuple[str, ...]:
    kept = list(statements)
    for item in fresh:
        if not _is_covered(item.text, kept):
            kept.append(item.text)
    return tuple(kept[-MAX_STATEMENTS:])


def _is_covered(text: str, by: Sequence[str]) -> bool:
    fact = parse_fact(text)
    return any(covers_fact(parse_fact(said), fact) for said in by)


def _bullets(body: str) -> Iterator[str]:
    """What a memory of decisions says, by line: the recap is all of them together."""
    for line in body.splitlines():
        if line.startswith("- "):
            yield line[2:].strip()
        elif line.startswith(AGREED_LABEL):
            yield line.removeprefix(AGREED_LABEL).strip()
