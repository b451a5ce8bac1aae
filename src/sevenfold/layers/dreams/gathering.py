"""What past sessions say of memories that are in doubt: turns with Sevenfold, Claude Code and Codex in the
project, found by the index that `sevenfold search` uses. Evidence for the fork, and nothing that it may take
over unasked."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, time
from pathlib import Path
from typing import TypeAlias

from sevenfold.core.errors import InputError
from sevenfold.core.events import Emit
from sevenfold.layers.dreams.inputs import DreamInputs
from sevenfold.layers.dreams.merge import MemoryUseFacts
from sevenfold.layers.dreams.policy import DreamMemory
from sevenfold.layers.memory.search.lexical import is_talk, split_words
from sevenfold.store.foreign.transcripts import find_own_transcripts, find_transcripts, list_default_folders
from sevenfold.store.session_index.finder import (
    MARK_END,
    MARK_START,
    SessionHit,
    SessionQuery,
    hide_secrets,
)
from sevenfold.store.session_index.index import SessionIndex

MAX_QUESTIONS = 5
"""A dream looks into few memories at a time; those that it settles are not in doubt at the next."""
TURNS_EACH = 2
_QUERY_WORDS = 8
"""Of what a memory is about. With more, a turn is found for its everyday words."""
_LINE_CHARS = 300
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class PastQuestion:
    """A memory, and what past sessions are searched for because of it."""

    key: str
    text: str
    since: datetime
    """Only what was said after it was written can say more than it does."""


FindTurns: TypeAlias = Callable[[Sequence[PastQuestion]], str]
"""Searches past sessions. Blocks on the disk."""


def choose_questions(source: DreamInputs) -> tuple[PastQuestion, ...]:
    """Memories that name what the project no longer has, then those that were not used for longest."""
    known = [(item, source.uses.get(item.memory.key, MemoryUseFacts())) for item in source.kept]
    doubtful = sorted(known, key=lambda each: (not each[1].is_broken, _last(*each)))
    asked = (_ask(item) for item, _ in doubtful)
    return tuple(question for question in asked if question is not None)[:MAX_QUESTIONS]


def _last(item: DreamMemory, uses: MemoryUseFacts) -> datetime:
    return uses.last_use or _begin(item)


def _begin(item: DreamMemory) -> datetime:
    return datetime.combine(item.written, time(), UTC)


def _ask(item: DreamMemory) -> PastQuestion | None:
    memory = item.memory
    about = f"{memory.name.replace('-', ' ')} {memory.description} {memory.body[:_LINE_CHARS]}"
    # As they are written: the index of sessions knows no stems.
    telling = (word for word in _WORD.findall(about) if not all(map(is_talk, split_words(word))))
    words = list(dict.fromkeys(telling))[:_QUERY_WORDS]
    return PastQuestion(memory.key, " ".join(words), _begin(item)) if words else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PastSessions:
    """The sessions of this machine that lie in one project."""

    home: Path
    user_home: Path
    root: Path
    environ: Mapping[str, str]
    emit: Emit

    def find_turns(self, questions: Sequence[PastQuestion]) -> str:
        """A line for each turn that was found, below the memory that it may speak of; empty for none."""
        own = find_own_transcripts(self.home)
        others = find_transcripts(list_default_folders(self.environ, self.user_home))
        unreadable = [item.path for item in (*own.unreadable, *others.unreadable)]
        with closing(SessionIndex.open(self.home, emit=self.emit)) as index:
            index.update([*own.files, *others.files], kept=unreadable)
            return "\n".join(line for question in questions for line in self._answer(index, question))

    def _answer(self, index: SessionIndex, question: PastQuestion) -> Iterator[str]:
        query = SessionQuery(
            text=question.text,
            project=os.path.realpath(self.root),
            since=question.since,
            limit=TURNS_EACH,
        )
        with suppress(InputError):  # it holds no word that the index knows
            if hits := index.search(query):
                yield f"{question.key}:"
                yield from (f"- {_describe(hit)}" for hit in hits)


def _describe(hit: SessionHit) -> str:
    said = " ".join(hide_secrets(hit.snippet, hit.context).translate(_UNMARKED).split())
    when = f"{hit.at:%Y-%m-%d}" if hit.at else "no date"
    return f"{when}, turn {hit.turn} of {hit.path}: {said[:_LINE_CHARS]}"


_UNMARKED = dict.fromkeys(map(ord, (MARK_START, MARK_END)))
