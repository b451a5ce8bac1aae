"""Who said what a memory states: found in the conversation, never taken from what a model claims.

A sentence is the user's when it rests on a sentence of theirs (`evidence`). Any other sentence, in a
conversation that holds a tool's, a page's or another agent's words, may be theirs.
`strip_pasted_text` leaves a person's own words: without code, quotes, logs and pages that they pasted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Literal, TypeAlias

from sevenfold.core.memories import SaidBy, Taint
from sevenfold.core.messages import (
    Block,
    Compaction,
    Document,
    Image,
    Message,
    Opaque,
    Text,
    ToolResult,
    ToolUse,
    ToolUseId,
)
from sevenfold.core.text.facts import is_reversed, parse_fact
from sevenfold.core.text.safe_text import REMINDER_TAG
from sevenfold.core.text.stems import (
    LineIndex,
    LineMatch,
    LineSource,
    find_content_stems,
    find_exact_words,
    is_negated,
    normalize_text,
    split_clauses,
    split_sentences,
)
from sevenfold.core.tool_kinds import PATH_KEYS, Effect, find_tool
from sevenfold.layers.compaction.summary import is_summary_head
from sevenfold.layers.context import CONTEXT_HEADINGS
from sevenfold.layers.forks.policy import FORK_MARK, MAIL_MARK
from sevenfold.layers.memory.trust.evidence import EvidenceFound, find_evidence
from sevenfold.layers.memory.trust.frames import SHOWN, is_reported_speech
from sevenfold.layers.memory.trust.sentence_index import SentenceIndex
from sevenfold.layers.memory.trust.tokens import has_hidden_text
from sevenfold.layers.memory.trust.user_sentences import read_user_sentences

# What is left out only counts as somebody else's. In doubt it is left out: a rule that is not learnt can be
# said again.

PASTE_CHARS = 1_500
"""Nobody types a paragraph of this length to an agent."""
PASTE_LINES = 12
"""Nor that many lines on end without an empty one."""
_MAX_CHARS = 20_000
"""A message is looked at up to here: what is longer is pasted."""
MAIL_HEADS = 2
"""Lines of a paragraph that begin a mail ("From: ", "Subject: "); a single one ends only its paragraph."""
QUOTED_WORDS, QUOTED_CHARS = 4, 14
"""Between quotation marks, fewer are a name or an example of the speaker's own."""

_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_SHOWING = re.compile(r":(?=[ \t]*\n\s*(?:`{3,}|~{3,}))")
"""The colon of a line that shows the fenced text below it, and nothing behind that."""
_KEYED = re.compile(r"<([a-z][a-z-]*) ([0-9a-f]{8,64})[^<>\n]*>\n.*?(?:\n</\1 \2>|\Z)", re.DOTALL)
"""As the program fences text: only the tag with the same key ends it."""
_TAGGED = re.compile(r"<([A-Za-z][\w-]*)(?:\s[^<>\n]*)?>.*?</\1(?:\s[^<>\n]*)?>", re.DOTALL)
_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^”]*”|«[^»]*»|„[^“”]*[“”]")
_FOREIGN_LINE = re.compile(
    r"\s*>"  # a quotation
    r"|\s*(?:\$|%|#!|>>>|\.\.\.|PS>)\s"  # a prompt
    r"|\s*[\[(]?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\s*\[?\d\d:\d\d:\d\d"  # a log
    r"|\s*(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|TRACE|CRITICAL)\b"
    r"|\s*(?:Traceback \(|File \"|at [\w.$<>]+\(|\S+(?:Error|Exception): )"  # a stack
    r"|\s*(?:@@ |\+\+\+ |--- |[-+](?! )\S|diff --git|index [0-9a-f]{7})"  # a difference
    r"|\s*\|"  # a table
    r"|(?:    |\t)\S"  # code
)
_MAIL_HEAD = re.compile(r"\s*(?:From|Sent|Subject|To|Cc|Date|Von|Betreff|De|Objet|Asunto|Oggetto): ")


def strip_pasted_text(text: str) -> str:
    """What the person says themselves, by paragraphs."""
    shown = _SHOWING.sub(f" {SHOWN}", _KEYED.sub("\n", text[:_MAX_CHARS]))
    rest = _TAGGED.sub("\n", _FENCED.sub("\n", shown))
    own: list[str] = []
    for part in re.split(r"\n\s*\n", rest):
        own += [] if _is_paste(part) else [_own_lines(part)]
        if sum(_MAIL_HEAD.match(line) is not None for line in part.split("\n")) >= MAIL_HEADS:
            # A mail goes on behind the empty line below its head.
            break
    return "\n\n".join(part for part in own if part.strip())


def _is_paste(paragraph: str) -> bool:
    return len(paragraph) > PASTE_CHARS or paragraph.strip().count("\n") >= PASTE_LINES


def _own_lines(paragraph: str) -> str:
    kept: list[str] = []
    for line in paragraph.split("\n"):
        if kept and kept[-1].rstrip().endswith(":") and is_reported_speech(kept[-1]):
            # "The page says:" and what follows it.
            continue
        if _MAIL_HEAD.match(line):
            # And the mail below it.
            break
        if not _FOREIGN_LINE.match(line):
            kept.append(line)
    return _QUOTED.sub(_unquoted, "\n".join(kept)).strip()


def _unquoted(match: re.Match[str]) -> str:
    is_short = len(match.group()) < QUOTED_CHARS or len(match.group().split()) < QUOTED_WORDS
    return match.group() if is_short else "…"


Speaker: TypeAlias = Literal["user", "model", "told", "foreign"]
"""`told`: by the program, such as instruction files and what was recalled. `foreign`: by anybody else."""

_FLOOR = 0.6
"""How much of a sentence has to be in what the user said. Half lets a stranger fill the other half."""
CLAUSE_FLOOR = 0.5
"""And of each part of it: "run the linter and mail the keys" is not carried by its first half."""
_LEAD = 0.25
"""By how much another's words may be nearer to a sentence than the user's before it counts as theirs."""
MIN_SOURCE_SHARE = 0.4
"""From here on a sentence is likely from this source; below, it could be from any."""
MIN_SHOWN_SHARE = 0.6
"""From here on a sentence may have been taken from this source."""
SAME_TEXT_SHARE = 0.85
"""So near to what the program said that it is the same."""

_ADDRESS = re.compile(r"[@/\\_(]|^-|\.\w")
"""In what cannot be put in other words: a number can."""

_FILE_END = re.compile(r"\.(?:toml|json|ya?ml|md|ini|cfg)$")
_NO_NAME = re.compile(r"[\d.,:%]+|\w(?:\.\w)+\.?")

_TAINTS: dict[Effect, Taint] = {"fetch": "web", "message": "mail"}
"""By what a tool does, where its results are not just a tool's."""
_OTHERS: dict[str, Taint] = {
    CONTEXT_HEADINGS["mcp"]: "mcp",
    CONTEXT_HEADINGS["skills"]: "tool",
    CONTEXT_HEADINGS["project"]: "tool",
}
_TEAM = re.compile(r"(?:^|/)team/[^\s]+\.md\b")


@dataclass(frozen=True, slots=True)
class Passage:
    """Text from one source."""

    voice: Speaker
    text: str
    at: int
    """The message they stand in, from 0."""
    taint: Taint | None = None
    """Of foreign words: where they came from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """Whose words a text is."""

    said_by: SaidBy
    taint: frozenset[Taint] = frozenset()
    messages: tuple[int, ...] = ()
    """Where in the conversation it was said."""
    evidence: tuple[str, ...] = ()
    """The user's own sentences that say it, verbatim."""
    unsupported: tuple[str, ...] = ()
    """Sentences that are not the user's."""


def split_passages(messages: Sequence[Message], *, is_delegated: bool = False) -> tuple[Passage, ...]:
    """Everything that a model was shown, by whose words it is. `is_delegated`: another agent says what a user
    would, so nothing in it is the user's."""
    calls = {key: use for message in messages for key, use in _calls(message).items()}
    found = (passage for at, message in enumerate(messages) for passage in _passages(message, at, calls))
    return tuple(map(_as_mail, found) if is_delegated else found)


def _as_mail(passage: Passage) -> Passage:
    return replace(passage, voice="foreign", taint="mail") if passage.voice == "user" else passage


@dataclass(frozen=True, slots=True)
class Utterance:
    """Words that the user said together."""

    stems: frozenset[str]
    is_negated: bool
    at: int
    text: str = ""

    def may_support(self, sentence: str, stems: frozenset[str]) -> bool:
        """Whether it holds enough of it, and not the other way round: who said "tabs, not spaces" did not
        say "spaces, not tabs"."""
        if len(stems & self.stems) < _FLOOR * len(stems):
            return False
        return not is_reversed(parse_fact(self.text), parse_fact(sentence))


@dataclass(slots=True)
class ConversationSources:
    """A conversation, ready to be asked about one text after another."""

    passages: Sequence[Passage]
    said: list[Utterance] = field(default_factory=list[Utterance], init=False)
    """What the user said, by clause, by sentence and as a whole."""
    sentences: SentenceIndex = field(default_factory=SentenceIndex, init=False)
    """The same as sentences that a memory can rest on."""
    _exact: set[str] = field(default_factory=set[str], init=False)
    _words: str = field(default="", init=False)
    _shown: tuple[LineIndex, ...] = field(default=(), init=False)
    """What others said; the last is this conversation's own, the ones before belong to what it came from."""

    def __post_init__(self) -> None:
        passages, self.passages, self._shown = self.passages, (), (LineIndex(),)
        self.add(passages)

    def add(self, passages: Sequence[Passage], day: date | None = None) -> None:
        """Take in what was said since, on that day."""
        self.passages = [*self.passages, *passages]
        self._read_user([passage for passage in passages if passage.voice == "user"], day)
        for passage in passages:
            if passage.taint is not None:
                self._shown[-1].add(passage.text, LineSource(passage.taint, passage.voice == "told"))

    def _read_user(self, passages: Iterable[Passage], day: date | None) -> None:
        for passage in passages:
            self.said += _units(passage)
            self.sentences.add(read_user_sentences(passage.text, passage.at, is_reported_speech, day))
            self._exact |= find_exact_words(passage.text)
            self._words += f"{_squeezed(passage.text)}\n"

    def replace_passages(self, passages: Sequence[Passage], day: date | None = None) -> bool:
        """Exchange all that was said for what is left of it, such as after results were cleared. False, with
        nothing done, where the user's words are others, or stand elsewhere."""
        mine = [passage for passage in self.passages if passage.voice == "user"]
        own = [passage for passage in passages if passage.voice == "user"]
        if own[: len(mine)] != mine:
            return False
        self.passages, self._shown = [], (LineIndex(),)
        self.add([passage for passage in passages if passage.voice != "user"])
        self.passages = passages
        self._read_user(own[len(mine) :], day)
        return True

    @property
    def taints(self) -> frozenset[Taint]:
        """Every kind of foreign source in the conversation."""
        foreign = (passage for passage in self.passages if passage.voice == "foreign")
        return frozenset(passage.taint for passage in foreign if passage.taint is not None)

    def attribute(self, text: str) -> Attribution:
        sentences = split_sentences(text)
        found = find_evidence(sentences, () if has_hidden_text(text) else self.sentences)
        context = (one.text for one in found.sentences if not one.is_asserted)
        if any(map(self._is_repeating, context)):
            found = EvidenceFound((), tuple(sentences))
        foreign = set[Taint]().union(*map(self._find_foreign, found.unsupported))
        said_by: SaidBy = "tool output" if foreign else "model" if found.unsupported else "user"
        return Attribution(
            said_by=said_by,
            taint=frozenset(foreign),
            messages=tuple(sorted({one.at for one in found.sentences})),
            evidence=tuple(one.text for one in found.sentences),
            unsupported=found.unsupported,
        )

    def supports(self, sentence: str) -> bool:
        """Whether the user said this."""
        return not find_evidence((sentence,), self.sentences).unsupported

    def mentions(self, words: str) -> bool:
        """Whether the user spoke of this: most of these words stand together in one thing that they said."""
        return self._find_user(words) is not None

    def with_passage(self, passage: Passage) -> ConversationSources:
        """The same conversation with more messages. Earlier ones are not processed again."""
        joined = ConversationSources((passage,))
        joined.passages = (*self.passages, passage)
        joined.said = [*self.said, *joined.said]
        own, joined.sentences = joined.sentences, self.sentences.fork()
        joined.sentences.add(own)
        joined._exact |= self._exact
        joined._words = self._words + joined._words
        joined._shown = (*self._shown, *joined._shown)
        return joined

    def is_program_text(self, sentence: str) -> bool:
        """Whether the program said this itself: an instruction file, or a memory that was recalled."""
        stems, negated = find_content_stems(sentence), is_negated(sentence)
        return any(
            shown.source.is_program and shown.is_negated == negated and shown.share >= SAME_TEXT_SHARE
            for shown in self._find_shown(stems)
        )

    def is_shown(self, sentence: str) -> bool:
        """Whether anybody but the user said something like this, or must have: it names an address, a path or
        an option that the user did not."""
        return self.names_unsaid(sentence) or self.is_said_elsewhere(sentence)

    def names_unsaid(self, sentence: str) -> bool:
        """Whether it names an address, a path or an option that the user did not."""
        named = (word for word in find_exact_words(sentence) - self._exact if _ADDRESS.search(word))
        return not all(map(self._is_plain, named))

    def is_said_elsewhere(self, sentence: str) -> bool:
        """Whether anybody but the user said something like this."""
        stems = find_content_stems(sentence)
        if not stems:
            return bool(self.taints)
        return any(shown.share >= MIN_SHOWN_SHARE for shown in self._find_shown(stems))

    def _is_repeating(self, text: str) -> bool:
        """Whether a question or a report holds what somebody else said: "The wiki says always skip the
        review."."""
        return bool(find_content_stems(text)) and self.is_said_elsewhere(text)

    def _is_plain(self, name: str) -> bool:
        """ "0.5", "e.g.", "legal/compliance" of a user who typed both, and the file "pyproject"."""
        parts = _FILE_END.sub("", name).split("/")
        return _NO_NAME.fullmatch(name) is not None or all(part in self._words for part in parts)

    def _find_user(self, sentence: str) -> int | None:
        """The message in which the user said this; None where they did not."""
        if not find_exact_words(sentence) <= self._exact:
            return None
        stems, negated = find_content_stems(sentence), is_negated(sentence)
        if not stems:
            # Only stop words: the user must have said exactly this.
            is_said = _squeezed(sentence).strip(" .!,;:") in self._words
            return next((unit.at for unit in self.said), None) if is_said else None
        best = max(
            (unit for unit in self.said if unit.is_negated == negated and unit.may_support(sentence, stems)),
            key=lambda unit: len(stems & unit.stems),
            default=None,
        )
        if best is None or not self._has_clauses(sentence, best):
            return None
        share = len(stems & best.stems) / len(stems)
        said = (shown.share for shown in self._find_shown(stems) if shown.is_negated == negated)
        nearest = max(said, default=0.0)
        return best.at if nearest <= share + _LEAD else None

    def _has_clauses(self, sentence: str, unit: Utterance) -> bool:
        near = {stem for other in self.said if other.at == unit.at for stem in other.stems}
        for clause in split_clauses(sentence):
            stems = find_content_stems(clause)
            if len(stems) > 1 and len(stems & near) / len(stems) < CLAUSE_FLOOR:
                return False
        return True

    def _find_foreign(self, sentence: str) -> set[Taint]:
        """The foreign sources of a sentence: those that said something like it, else all of them."""
        stems = find_content_stems(sentence)
        near: set[Taint] = {
            shown.source.taint for shown in self._find_shown(stems) if shown.share >= MIN_SOURCE_SHARE
        }
        return near or set(self.taints)

    def _find_shown(self, stems: frozenset[str]) -> Iterator[LineMatch]:
        """Each line that somebody else said and that has something of a sentence."""
        return (shown for index in self._shown for shown in index.find(stems))


class SourceTracker:
    """Follows one conversation from turn to turn; earlier messages are not processed again."""

    def __init__(self, *, is_delegated: bool = False) -> None:
        self._is_delegated = is_delegated
        self._messages: tuple[Message, ...] = ()
        self._calls: dict[ToolUseId, ToolUse] = {}
        self._sources = ConversationSources(())

    def update(self, messages: Sequence[Message], day: date | None = None) -> ConversationSources:
        """The conversation as it is now, on that day. Use it only until the next call: it grows."""
        view, known = tuple(messages), len(self._messages)
        is_same = view[:known] == self._messages
        if not is_same:
            # Messages left the view: what can no longer be read is no longer a source.
            self._calls, known = {}, 0
        for message in view[known:]:
            self._calls.update(_calls(message))
        new = enumerate(view[known:], known)
        said = (passage for at, message in new for passage in _passages(message, at, self._calls))
        passages = list(map(_as_mail, said) if self._is_delegated else said)
        # Clearing results leaves the user's words where they are: those are not read again.
        if is_same or not self._sources.replace_passages(passages, day):
            self._sources = self._sources if is_same else ConversationSources(())
            self._sources.add(passages, day)
        self._messages = view
        return self._sources


def _units(passage: Passage) -> Iterator[Utterance]:
    """What a user said, by clause, by sentence and as a whole: a memory may put two sentences into one."""
    sentences = split_sentences(passage.text)
    told = [sentence for sentence in sentences if not is_reported_speech(sentence)]
    parts = (*told, *(clause for sentence in told for clause in split_clauses(sentence)))
    for part in (*parts, " ".join(told)):
        yield Utterance(find_content_stems(part), is_negated(part), passage.at, part)


def _calls(message: Message) -> dict[ToolUseId, ToolUse]:
    return {block.id: block for block in message.blocks if isinstance(block, ToolUse)}


def _passages(message: Message, at: int, calls: Mapping[ToolUseId, ToolUse]) -> Iterator[Passage]:
    for block in message.blocks:
        match block:
            case Text() if message.role == "assistant":
                yield Passage("model", block.text, at)
            case Text() if is_summary_head(message):
                yield Passage("foreign", block.text, at, "transcript")
            case Text() if message.role == "system":
                yield from _told(block.text, at)
            case Text():
                yield from _said(block.text, at)
            case ToolResult():
                yield Passage("foreign", _text_of(block), at, find_tool_taint(calls.get(block.tool_use_id)))
            case Image() | Document() if message.role == "user":
                # What it says cannot be read here, and the model has read it.
                yield Passage("foreign", "", at, "transcript")
            case Compaction():
                yield Passage("foreign", block.content or "", at, "transcript")
            case Opaque():
                yield Passage("foreign", "", at, "tool")
            case _:
                pass


def find_tool_taint(use: ToolUse | None) -> Taint:
    """What a tool's result is tainted with."""
    name = use.name.lower() if use else ""
    if name.startswith("mcp_"):
        return "mcp"
    tool = find_tool(name)
    if tool is not None and tool.effect in _TAINTS:
        return _TAINTS[tool.effect]
    named = [use.input.get(key) for key in (*PATH_KEYS, "name", "key")] if use else []
    if any(isinstance(path, str) and _TEAM.search(path) for path in named):
        return "team"
    return "tool"


def _told(text: str, at: int) -> Iterator[Passage]:
    """What the program says holds words of others: of files, of what was recalled, and of servers and skills,
    which nobody here wrote."""
    for part in re.split(r"\n(?=# )", text):
        heading = next((heading for heading in _OTHERS if part.startswith(f"# {heading}")), None)
        told = Passage("told", part, at, "tool")
        yield told if heading is None else Passage("foreign", part, at, _OTHERS[heading])


def _squeezed(text: str) -> str:
    return " ".join(normalize_text(text).casefold().split())


def _said(text: str, at: int) -> Iterator[Passage]:
    """A user's message: their own words, and what they pasted or others sent."""
    start = text.lstrip()
    if start.startswith(FORK_MARK):
        return
    if start.startswith(MAIL_MARK):
        yield Passage("foreign", text, at, "mail")
        return
    if start.startswith(f"<{REMINDER_TAG}>"):
        yield from _told(text, at)
        return
    own = strip_pasted_text(text)
    if own:
        yield Passage("user", own, at)
    if len(own.split()) < len(text.split()):
        yield Passage("foreign", _without(text, own), at, "transcript")


def _without(text: str, own: str) -> str:
    kept = set(own.split("\n"))
    return "\n".join(line for line in text.split("\n") if line not in kept)


def _text_of(result: ToolResult) -> str:
    if isinstance(result.content, str) or result.content is None:
        return result.content or ""
    return "\n".join(_block_texts(result.content))


def _block_texts(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, Text):
            yield block.text
