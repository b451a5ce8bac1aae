"""Finds the turns that a query is about, in the database of the index, and describes them for others."""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import cast

from sevenfold.core.errors import InputError
from sevenfold.core.json import replace_lone_surrogates
from sevenfold.core.secrets import find_secrets
from sevenfold.core.text.safe_text import escape_controls
from sevenfold.core.text.stems import UNSPACED_CHARS
from sevenfold.store.foreign.entries import ForeignAgent

COMMON_SHARE = 0.2
"""A word in more passages than this says little. Looking for any of several words leaves it out."""
ALWAYS_RARE = 20
"""Passages: in a few sessions every word is in a large part of them."""
TURNS_PER_SESSION = 3
"""So that one long session does not fill the whole answer."""
_CANDIDATES = 60
"""Passages looked at for each turn that is wanted: several passages may be of one turn or session."""
MARK_START, MARK_END = "\x02", "\x03"
"""Around each word of a snippet that was found."""
_SNIPPET_WORDS = 32
_GAP = " … "
_NOT_INDEXED = dict.fromkeys(map(ord, "\x00\x02\x03"), " ")
"""What ends a text for SQLite, and the marks of a snippet."""
CONTEXT_CHARS = 120
"""On each side of a snippet, and further to the next blank: a word such as "password" that makes a secret of
what follows. Checking ten of these takes 10 ms."""
MAX_CONTEXT_CHARS = 1_000
"""To the next blank at most: all but the longest keys fit."""
_LONG_SECRET = "PRIVATE KEY-----"
"""Of a secret that has blanks: where it occurs, the whole passage is checked."""

# Scripts written without spaces: each character becomes a word, and a query for several becomes a phrase.
_UNSPACED = re.compile(f"({UNSPACED_CHARS})")
_SPACED_OUT = re.compile(f" ?({UNSPACED_CHARS}) ?")
_TERM = re.compile(r'"([^"]+)"|(\S+)')


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHit:
    """A turn that was found."""

    path: Path
    agent: ForeignAgent
    session: str
    project: str
    title: str
    turn: int
    conversation: str
    """ "" for the session itself, else the sub-agent."""
    at: datetime | None
    snippet: str
    """With `MARK_START` and `MARK_END` around the words that were found."""
    context: str
    """What stands around the snippet, for whoever must not show a part of a secret."""
    more: int = 0
    """Further turns of the same session that were found and are not listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionQuery:
    text: str
    project: str | None = None
    """The path of a folder, or a part of a path."""
    since: datetime | None = None
    limit: int = 10


_NARROWED = (
    "SELECT passage.id FROM passage JOIN file ON file.id = passage.file"
    " WHERE (:since IS NULL OR passage.at >= :since)"
    " AND (:project IS NULL OR CASE WHEN substr(:project, 1, 1) = '/'"
    " THEN file.project = :project OR substr(file.project, 1, length(:project) + 1) = :project || '/'"
    " ELSE instr(file.project, :project) > 0 END)"
)


class TurnFinder:
    """Searches an open database."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def find(self, query: SessionQuery) -> list[SessionHit]:
        """The best turns, best first: those with all words, then those with some of them."""
        terms = _split_query(query.text)
        if not terms:
            raise InputError(f"{query.text!r} holds no word to look for; give one, such as: retry timeout")
        places = self._match(" AND ".join(terms), query)
        if len(places) < query.limit and len(terms) > 1:
            total = self._count_passages()
            most = max(COMMON_SHARE * total, ALWAYS_RARE)
            rare = [term for term in terms if self._count(term) <= most]
            seen = {place.id for place in places}
            found = self._match(" OR ".join(rare), query) if rare else []
            places += [place for place in found if place.id not in seen]
        chosen, more = _choose_turns(places, query.limit)
        if not chosen:
            return []
        snippets = self._snippets(" OR ".join(terms), [place.id for place in chosen])
        return [self._describe(place, snippets[place.id], more) for place in chosen if place.id in snippets]

    def _match(self, match: str, query: SessionQuery) -> list[_Place]:
        """The best passages, best first. More of them where few sessions fill the answer."""
        most = query.limit * _CANDIDATES
        places = self._select(match, query, most)
        while len(places) == most and len(_choose_turns(places, query.limit)[0]) < query.limit:
            most *= _CANDIDATES
            places = self._select(match, query, most)
        return places

    def _select(self, match: str, query: SessionQuery, most: int) -> list[_Place]:
        # Ranked before anything is joined: a common word is in most of all passages. The plus sign keeps
        # SQLite from running the full-text query once for each of the rows.
        is_narrow = query.since is not None or query.project is not None
        narrowed = f" AND +rowid IN ({_NARROWED})" if is_narrow else ""
        sql = (
            "SELECT passage.id, passage.file, file.session, passage.turn, passage.conversation, passage.at,"
            " passage.hash, file.project, file.last_at FROM ("
            " SELECT rowid AS id, bm25(words, 4.0, 2.0, 1.0) AS score FROM words"
            f" WHERE words MATCH :match{narrowed} ORDER BY score LIMIT :most"
            ") AS best JOIN passage USING (id) JOIN file ON file.id = passage.file"
            " ORDER BY score, passage.at DESC"
        )
        wanted = {
            "match": match,
            "since": query.since.timestamp() if query.since else None,
            "project": query.project,
            "most": most,
        }
        return [
            _Place(
                id=row[0],
                file=row[1],
                session=row[2],
                turn=row[3],
                conversation=row[4],
                at=row[5],
                hash=row[6],
                project=row[7],
                last_at=row[8],
            )
            for row in self._database.execute(sql, wanted)
        ]

    def _count_passages(self) -> int:
        return cast("int", self._database.execute("SELECT count(*) FROM passage").fetchone()[0])

    def _count(self, term: str) -> int:
        """In how many passages the rarest word of a term occurs."""
        counts = [
            cast(
                "int",
                self._database.execute(
                    "SELECT coalesce(sum(doc), 0) FROM vocabulary WHERE term = ?", (word,)
                ).fetchone()[0],
            )
            for word in re.findall(r"\w+", term.strip('"').lower())
        ]
        return min(counts, default=0)

    def _snippets(self, match: str, ids: Sequence[int]) -> dict[int, _Snippet]:
        marks = ",".join("?" * len(ids))
        rows = self._database.execute(
            f"SELECT rowid, snippet(words, -1, '{MARK_START}', '{MARK_END}', '{_GAP}', {_SNIPPET_WORDS}),"
            f" prompt, answer, tools FROM words WHERE words MATCH ? AND rowid IN ({marks})",
            (match, *ids),
        )
        return {row[0]: _Snippet(row[1], "\n".join(row[2:])) for row in rows}

    def _describe(self, place: _Place, snippet: _Snippet, more: dict[int, int]) -> SessionHit:
        path, agent, session, project, title = self._database.execute(
            "SELECT path, agent, session, project, title FROM file WHERE id = ?", (place.file,)
        ).fetchone()
        return SessionHit(
            path=Path(os.fsdecode(path)),
            agent=agent,
            session=session,
            project=project,
            title=title,
            turn=place.turn,
            conversation=place.conversation,
            at=None if place.at is None else datetime.fromtimestamp(place.at, UTC),
            snippet=_SPACED_OUT.sub(r"\1", snippet.text),
            context=snippet.find_context(),
            more=more.get(place.id, 0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    id: int
    file: int
    session: str
    turn: int
    conversation: str
    at: float | None
    hash: bytes
    """Of the conversation up to here: the same in every copy."""
    project: str
    last_at: float | None
    """When the session last went on."""

    @property
    def age(self) -> tuple[float, float, int]:
        """Smaller for an original than for its copies, which have the same time or a later one, and go on."""
        return self.at or inf, self.last_at or inf, -self.id


@dataclass(frozen=True, slots=True)
class _Snippet:
    text: str
    passage: str

    def find_context(self) -> str:
        """The passage around each part of the snippet."""
        if _LONG_SECRET in self.passage:
            return self.passage
        parts: list[str] = []
        for part in self.text.replace(MARK_START, "").replace(MARK_END, "").split(_GAP):
            start = self.passage.find(part)
            if part.strip() and start < 0:
                return self.passage
            end = start + len(part)
            before = self.passage[max(0, start - MAX_CONTEXT_CHARS) : max(0, start - CONTEXT_CHARS)]
            after = self.passage[end + CONTEXT_CHARS : end + MAX_CONTEXT_CHARS]
            # Not from the middle of a word: half a key may not look like one.
            first = max(0, start - CONTEXT_CHARS) - len(re.findall(r"\S*\Z", before)[0])
            last = end + CONTEXT_CHARS + len(re.findall(r"\A\S*", after)[0])
            parts.append(self.passage[first:last])
        return "\n".join(parts)


def _choose_turns(places: Sequence[_Place], limit: int) -> tuple[list[_Place], dict[int, int]]:
    """The best passage of each turn, at most a few of each session; and how many further turns there are.

    A session that branched off repeats the turns of its source: they are listed with the source.
    """
    originals: dict[tuple[str, bytes], _Place] = {}
    for place in places:
        known = originals.setdefault((place.project, place.hash), place)
        if place.age < known.age:
            originals[place.project, place.hash] = place
    turns: dict[tuple[int, int, str], _Place] = {}
    for place in places:
        if place.file == originals[place.project, place.hash].file:
            turns.setdefault((place.file, place.turn, place.conversation), place)
    by_session: dict[str, list[_Place]] = {}
    for place in turns.values():
        by_session.setdefault(place.session, []).append(place)
    listed = {place.id for group in by_session.values() for place in group[:TURNS_PER_SESSION]}
    chosen = [place for place in turns.values() if place.id in listed][:limit]
    last = {place.session: place.id for place in chosen}
    shown = {session: sum(place.session == session for place in chosen) for session in last}
    return chosen, {id_: len(by_session[session]) - shown[session] for session, id_ in last.items()}


def _split_query(text: str) -> list[str]:
    """Words and quoted phrases, each as a full-text string."""
    found = (phrase or word for phrase, word in _TERM.findall(replace_lone_surrogates(text)))
    spread = (separate_characters(term).replace('"', " ").strip() for term in found)
    return list(dict.fromkeys(f'"{term}"' for term in spread if re.search(r"\w", term)))


def separate_characters(text: str) -> str:
    """The text as it is indexed: each character of a script without spaces is a word."""
    text = replace_lone_surrogates(text).translate(_NOT_INDEXED)
    return _UNSPACED.sub(r" \1 ", text) if _UNSPACED.search(text) else text


# A turn as others are shown it.

_SESSION_ID = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
MARKED_WORD = re.compile(f"{MARK_START}([^{MARK_END}]*){MARK_END}")
_SCAN_KEY = b"snippets are not kept"
"""The scan wants a key for fingerprints. None of them is used here."""


def hide_secrets(text: str, context: str) -> str:
    """The text, or a note in its place where what stands around it seems to hold a secret."""
    found = find_secrets(context, key=_SCAN_KEY)
    if found.is_clean:
        return text
    names = ", ".join(dict.fromkeys(item.name for item in found.findings)) or "it could not be checked"
    return f"(not shown, it seems to hold a secret: {names})"


def resume_command(hit: SessionHit) -> str:
    """What to type to go on with a session, or to read it. A transcript is not trusted: what is no plain id
    could be an option, and what holds a line break could look like a line of ours."""
    if not _SESSION_ID.fullmatch(hit.session) or not hit.project.isprintable():
        return f"sevenfold replay -- {shlex.quote(escape_controls(str(hit.path)))}"
    folder = f"cd -- {shlex.quote(hit.project)} && " if hit.project else ""
    match hit.agent:
        case "sevenfold":
            return f"{folder}sevenfold chat --resume {shlex.quote(hit.session)}"
        case "claude-code":
            return f"{folder}claude --resume {shlex.quote(hit.session)}"
        case "codex":
            return f"{folder}codex resume {shlex.quote(hit.session)}"
        case "messages":
            return f"sevenfold replay {shlex.quote(str(hit.path))}"


def describe_hit(hit: SessionHit) -> dict[str, object]:
    """A turn as JSON, without marks and without secrets."""
    snippet = hide_secrets(hit.snippet, hit.context)
    return {
        "agent": hit.agent,
        "session": hit.session,
        "sub_agent": hit.conversation or None,
        "project": hit.project,
        "title": hide_secrets(hit.title, hit.title),
        "turn": hit.turn,
        "at": hit.at.astimezone(UTC).isoformat() if hit.at else None,
        "snippet": MARKED_WORD.sub(r"\1", snippet),
        "found": list(dict.fromkeys(MARKED_WORD.findall(snippet))),
        "more": hit.more,
        "path": str(hit.path),
        "resume": resume_command(hit),
    }
