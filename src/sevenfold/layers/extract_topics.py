"""Statements become memories: one for each that stands for itself, and one for what a conversation decided,
which grows turn by turn. An amendment takes the place of what it amends; history keeps that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sevenfold.core.memories import Memory
from sevenfold.layers.extract_gate import MAX_DESCRIPTION_CHARS, Draft
from sevenfold.layers.extract_rules import (
    Statement,
    StatementKind,
    agrees,
    answers,
    find_answer,
    find_recap,
    find_statements,
)
from sevenfold.layers.memory_facts import covers, read_fact
from sevenfold.layers.stems import content_stems, cut_words, make_slug, split_sentences

OPENING_CHARS = 320
RECAP_CHARS = 1_500
MAX_STATEMENTS = 24
"""Of one topic. A conversation that decides more has decided on several things."""
KIN = 0.15
"""Of a turn's words that the topic, or what the assistant said of it, has too: then it goes on with it."""
SHORT = 6
"""Words that mean something. Fewer are an answer: nobody begins another matter with less."""

WHY = "**Why:** "
AGREED = "**Agreed wording:** "
EARLIER = "**Before this amendment, where the above does not change it:**"

_ALONE: dict[StatementKind, str] = {"rule": "feedback", "about you": "user", "pointer": "reference"}


@dataclass(frozen=True, slots=True)
class Said:
    """One turn."""

    before: str
    """What the assistant said last before it."""
    own: str
    """The user's own words."""
    answer: str = ""
    """What the assistant said last in it."""


@dataclass(frozen=True, slots=True)
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
        return content_stems("\n".join((self.opening, *self.statements, self.recap)))


@dataclass(frozen=True, slots=True)
class Learnt:
    """What a turn comes to."""

    topic: Topic
    alone: tuple[Draft, ...] = ()
    """Statements that stand for themselves."""
    has_decided: bool = False
    """The topic says something that it did not say before: `render_topic` is its memory."""
    amends: bool = False
    """It changes a decision of another conversation: whoever knows which gives its name, with `retarget`."""


def take_turn(topic: Topic, said: Said) -> Learnt:
    """What the user stated in a turn, and the topic as it stands after it."""
    statements = find_statements(said.own, is_answer=bool(said.before))
    lasting = tuple(item for item in statements if item.kind in ("asked", *_ALONE))
    decided = [item for item in statements if item not in lasting]
    if not decided and (answer := find_answer(said.before, said.own)):
        decided = [Statement("decision", answer)]
    alone = tuple(_draft_alone(item) for item in lasting)
    if not _goes_on(topic, said):
        topic = Topic(opening=_opening(said.own))
    is_agreed = agrees(said.own)
    recap = find_recap(said.answer) or (find_recap(said.before) if is_agreed else "")
    if not decided and not (recap and (topic.key or is_agreed)):
        return Learnt(topic, alone)
    is_amendment = any(item.kind == "amendment" for item in decided)
    if is_amendment and not topic.is_amendment:
        topic = replace(topic, is_amendment=True, earlier=topic.statements, statements=(), recap="")
    grown = replace(
        topic,
        statements=_joined(topic.statements, decided),
        recap=cut_words(recap, RECAP_CHARS) or topic.recap,
    )
    named = grown if grown.key else replace(grown, key=f"{make_slug(grown.opening)}.md")
    return Learnt(named, alone, has_decided=True, amends=is_amendment and not topic.key)


def retarget(topic: Topic, memory: Memory) -> Topic:
    """The topic as an amendment of a memory that is there."""
    earlier = tuple(_bullets(memory.body))
    return replace(topic, key=memory.key, is_amendment=True, earlier=earlier)


def render_topic(topic: Topic) -> Draft:
    """The memory of what was decided. A full recap says all that still holds; without one, what was said
    before an amendment stands below it."""
    parts = ["\n".join(f"- {text}" for text in topic.statements)] if topic.statements else []
    if topic.recap:
        parts.append(f"{AGREED}{topic.recap}")
    if topic.opening and not _is_covered(topic.opening, topic.statements):
        parts.append(f"{WHY}{topic.opening}")
    if topic.earlier and not topic.recap:
        kept = [text for text in topic.earlier if not _is_covered(text, topic.statements)]
        parts += [EARLIER + "\n" + "\n".join(f"- {text}" for text in kept)] if kept else []
    described = next(iter(split_sentences(topic.opening or "\n".join(parts))), topic.key)
    name = topic.key.rpartition("/")[2].removesuffix(".md")
    return Draft(topic.key, name, cut_words(described, MAX_DESCRIPTION_CHARS), "project", "\n\n".join(parts))


def _draft_alone(item: Statement) -> Draft:
    kind = _ALONE.get(item.kind) or _guessed(item.text)
    slug = make_slug(item.text)
    return Draft(f"{slug}.md", slug, cut_words(item.text, MAX_DESCRIPTION_CHARS), kind, item.text)


def _guessed(text: str) -> str:
    """What kind of thing somebody asked to remember."""
    found = find_statements(text)
    return _ALONE.get(found[0].kind, "project") if found else "project"


def _goes_on(topic: Topic, said: Said) -> bool:
    """Whether a turn is about the topic, or answers what was said about it."""
    if not topic.opening:
        return False
    words = content_stems(said.own)
    if len(words) < SHORT or answers(said.own) or said.before.rstrip().endswith("?"):
        return True
    return len(words & (topic.words | content_stems(said.before))) >= KIN * len(words)


def _opening(own: str) -> str:
    return cut_words(" ".join(split_sentences(own)), OPENING_CHARS)


def _joined(statements: tuple[str, ...], fresh: Sequence[Statement]) -> tuple[str, ...]:
    kept = list(statements)
    for item in fresh:
        if not _is_covered(item.text, kept):
            kept.append(item.text)
    return tuple(kept[-MAX_STATEMENTS:])


def _is_covered(text: str, by: Sequence[str]) -> bool:
    fact = read_fact(text)
    return any(covers(read_fact(said), fact) for said in by)


def _bullets(body: str) -> Iterator[str]:
    """What a memory of decisions says, by line: the recap is all of them together."""
    for line in body.splitlines():
        if line.startswith("- "):
            yield line[2:].strip()
        elif line.startswith(AGREED):
            yield line.removeprefix(AGREED).strip()
