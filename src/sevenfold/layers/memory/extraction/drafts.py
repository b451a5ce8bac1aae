"""Drafts of memories, from a fork or from rules. Every draft goes through the gate.

`ExtractionTools` are the tools with which a fork writes drafts, in memory and not to disk. A refusal goes
back to the fork with the reason, so that it can correct the draft. `StatementReader` makes drafts without a
model: turns become statements, statements memories. `MemorySnapshot` holds the existing memories for the
gate, and reads them again when they have changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import islice

from sevenfold.core.errors import InputError, SevenfoldError
from sevenfold.core.events import DraftRefused, Emit
from sevenfold.core.json import Json, write_json
from sevenfold.core.memories import ARCHIVE_PREFIX, LOGS_PREFIX, TEAM_PREFIX, read_memory
from sevenfold.core.messages import Message, Text, ToolResult, ToolUse
from sevenfold.core.system import run_blocking
from sevenfold.core.text.safe_text import truncate_bytes
from sevenfold.core.text.stems import find_content_stems
from sevenfold.core.tool_kinds import MEMORY_WRITERS
from sevenfold.layers.forks.runner import ToolRunner
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
from sevenfold.layers.memory.extraction.policy import (
    ListedMemory,
    Topic,
    UserTurn,
    apply_turn,
    extract_user_words,
    render_memory_manifest,
    render_topic,
    retarget_topic,
)
from sevenfold.layers.memory.search.lexical import LexicalIndex
from sevenfold.layers.memory.trust.taint import ConversationSources, Passage, find_tool_taint
from sevenfold.store.files.folder import check_memory_key
from sevenfold.store.memory.changes import StoredMemory
from sevenfold.store.memory.directory import MemoryDir

MAX_NEAREST = 8
"""Memories that a draft is compared with one by one. A duplicate shares its words, and ranks first."""
_MAX_LISTED = 200
"""Memories that a fork is shown when it asks for a list, newest first."""
MOST_WHOLE, MOST_ALIKE, NEWEST = 50, 20, 20
"""Memories in the manifest: all of so many, else those most like what the user said and those written last.
All of 300 would be 11,000 tokens that no cache holds, after every turn."""


class MemorySnapshot:
    """Blocks on the disk: `refresh` in a thread; the rest works from memory."""

    def __init__(self, memory: MemoryDir) -> None:
        self.memory = memory
        self._generation: int | None = None
        self._stored: dict[str, StoredMemory] = {}
        self._index = LexicalIndex()

    def refresh(self) -> None:
        generation = self.memory.generation()
        if generation == self._generation:
            return
        found: dict[str, StoredMemory] = {stored.memory.key: stored for stored in self.memory.scan(None)}
        for key in self._stored.keys() - found.keys():
            self._index.remove(key)
        for key, stored in found.items():
            before = self._stored.get(key)
            if before is None or before.sha256 != stored.sha256:
                self._index.add(
                    key, f"{stored.memory.name}\n{stored.memory.description}\n{stored.memory.body}"
                )
        # The newest first, as they were scanned.
        self._stored, self._generation = found, generation

    @property
    def known(self) -> Sequence[KnownMemory]:
        return [_known(stored) for stored in self._stored.values()]

    def find(self, key: str) -> KnownMemory | None:
        stored = self._stored.get(key)
        return _known(stored) if stored else None

    def near(self, text: str) -> Sequence[KnownMemory]:
        """Those most like a text, the most like first."""
        return [_known(self._stored[hit.key]) for hit in self._index.rank(text, MAX_NEAREST)]

    def listed(self) -> Sequence[ListedMemory]:
        stored = list(self._stored.values())[:_MAX_LISTED]
        return [ListedMemory(item.memory, item.modified) for item in stored]

    def describe(self, said: str) -> str:
        """The manifest for what was said: what may say the same, what is new, and how many more there are."""
        if len(self._stored) <= MOST_WHOLE:
            return render_memory_manifest(self.listed())
        alike = [hit.key for hit in self._index.rank(said, MOST_ALIKE)]
        keys = dict.fromkeys((*alike, *islice(self._stored, NEWEST)))
        shown = (ListedMemory(self._stored[key].memory, self._stored[key].modified) for key in keys)
        return render_memory_manifest(shown, others=len(self._stored) - len(keys))


def _known(stored: StoredMemory) -> KnownMemory:
    return KnownMemory(stored.memory, stored.sha256, stored.origin)


_NOT_HERE = (TEAM_PREFIX, LOGS_PREFIX, ARCHIVE_PREFIX)
"""What is shared with others is theirs to agree to, and what was read may come from outside the project."""


class ExtractionTools:
    """The tools of one fork."""

    def __init__(
        self,
        session: str,
        folder: str,
        context: GateContext,
        memories: MemorySnapshot,
        read: ToolRunner,
        emit: Emit,
    ) -> None:
        self._session, self._folder, self._context = session, folder, context
        self._memories, self._read, self._emit = memories, read, emit
        self.drafts: dict[str, AdmittedDraft] = {}
        self.refused = 0

    async def run(self, use: ToolUse) -> ToolResult:
        try:
            return await self._run(use)
        except SevenfoldError as error:
            return ToolResult(use.id, str(error), is_error=True)

    async def _run(self, use: ToolUse) -> ToolResult:
        if use.name not in MEMORY_WRITERS:
            result = await self._read(use)
            self._note_result(use, result)
            return result
        action = use.input.get("action", "write") if use.name == "memory" else "write"
        match action:
            case "list":
                return ToolResult(use.id, render_memory_manifest(self._memories.listed()))
            case "read":
                return ToolResult(use.id, self._text(_key(_given(use, "name"))))
            case "write":
                return await self._answer(use, self._draft(use))
            case _:
                raise InputError(f"{action!r} is not done here: nothing is forgotten; write the new version")

    def _note_result(self, use: ToolUse, result: ToolResult) -> None:
        """What a fork reads counts as foreign words, like everything read before."""
        content = result.content or ""
        blocks = content if isinstance(content, tuple) else (Text(content),)
        text = "\n".join(block.text for block in blocks if isinstance(block, Text))
        passage = Passage("foreign", text, len(self._context.sources.passages), find_tool_taint(use))
        self._context = replace(self._context, sources=self._context.sources.with_passage(passage))

    def _draft(self, use: ToolUse) -> MemoryDraft:
        if use.name == "memory":
            key = _key(_given(use, "name"))
            return MemoryDraft(
                key=key,
                name=key.removesuffix(".md"),
                description=_given(use, "description"),
                kind=_given(use, "type", "project"),
                body=_given(use, "content"),
                applies_to=_texts(use.input.get("applies_to")),
            )
        key = self._key_of(_given(use, "file_path"))
        text = self._edited(key, use) if use.name == "edit" else _given(use, "content")
        memory = read_memory(key, text)
        return MemoryDraft(
            key=key,
            name=memory.name,
            description=memory.description,
            kind=memory.kind or "project",
            body=memory.body,
            applies_to=memory.applies_to,
        )

    async def _answer(self, use: ToolUse, draft: MemoryDraft) -> ToolResult:
        context = self._context
        found = await run_blocking(lambda: check_draft(draft, context))
        if isinstance(found, RefusedDraft):
            self.refused += 1
            self._emit(DraftRefused(self._session, found.key, found.rule, found.reason))
            return ToolResult(use.id, f"not written: {found.reason}", is_error=True)
        self.drafts[draft.key] = found
        if not found.judgement.taint:
            return ToolResult(use.id, f"{found.key} is written when you are done")
        quoted = "; ".join(repr(text[:120]) for text in found.judgement.unsupported[:3])
        return ToolResult(
            use.id,
            f"{found.key} waits until a person agrees, for these are not the user's own words: {quoted}. "
            "Write it again with what the user said alone, or leave it.",
            is_error=True,
        )

    def _text(self, key: str) -> str:
        if key in self.drafts:
            return self.drafts[key].text
        known = self._memories.find(key)
        if known is None:
            raise InputError(f"there is no memory {key!r}; those that are there are in the list above")
        return known.memory.text

    def _edited(self, key: str, use: ToolUse) -> str:
        text, old, new = self._text(key), _given(use, "old_string"), _given(use, "new_string", "")
        if text.count(old) != 1:
            raise InputError(
                f"the text to replace occurs {text.count(old)} times; quote it so that it is one"
            )
        return text.replace(old, new)

    def _key_of(self, path: str) -> str:
        folder = f"{self._folder}/"
        if not path.startswith(folder):
            raise InputError(f"{path} may not be written here, only what lies in {self._folder}")
        return _key(path.removeprefix(folder))


def _key(name: str) -> str:
    key = check_memory_key(f"{name.removesuffix('.md')}.md")
    if key.startswith(_NOT_HERE):
        raise InputError(f"{key} may not be written here; use a name without a folder")
    return key


def _given(use: ToolUse, key: str, default: str | None = None) -> str:
    value = use.input.get(key, default)
    if not isinstance(value, str) or (default is None and not value.strip()):
        raise InputError(f"{key} is {value!r:.80}; expected text")
    return value


def _texts(value: Json) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, tuple) else ()


# Extraction without a model.

_SUBJECT = re.compile(
    r"\b(?:amendments?|updates?|changes?|revision|correction) (?:to|of) (?:the|our|that) "
    r"(?P<what>(?:[\w'-]+ ){1,4}?)(?:policy|rule|decision|convention|agreement|plan|standard|limit|cap)\b",
    re.IGNORECASE,
)
SUBJECT_WEIGHT = 3
"""How often what an amendment says that it amends is counted, in a search that takes no weights."""
AMENDED_WORDS = 4
"""Words that an amendment and what it amends have to share: fewer, and it is about something else."""


@dataclass(frozen=True, slots=True)
class RecordedMessage:
    """A message of the history and the id of its record."""

    id: str
    message: Message
    offset: int = 0
    """Where its line starts in the transcript; 0 where that is not known."""


@dataclass(frozen=True, slots=True)
class ConversationSnapshot:
    """A conversation when a turn has ended."""

    history: Sequence[RecordedMessage]
    view: Sequence[Message]
    """What a model is shown of it now, with all that was put beside it."""
    hidden: Set[str] = frozenset()
    """Messages that are not in the view: a summary stands for them."""

    def restore_view(self, new: Sequence[RecordedMessage]) -> ConversationSnapshot:
        """With these messages in the view, also where a compaction has taken them out of it meanwhile: they
        are what a memory is checked against."""
        gone = tuple(one.message for one in new if one.id in self.hidden)
        return replace(self, view=(*gone, *self.view)) if gone else self


_SHOWN_MESSAGES = 40
"""With calls and results: about a turn. Of what is longer ago, what was said is shown."""
_SHOWN_BYTES, _SHOWN_CALL_BYTES = 4_000, 300
"""Of what the user said, and of a call or a result."""
MAX_LOOK_BYTES = 80_000
"""Of all steps that a model is shown at once: about 20,000 tokens, however long they have waited."""
MAX_OWN_BYTES = MAX_LOOK_BYTES // 2
"""Of these, what the user said: where there is more, it takes several looks."""
_AGENT_BYTES = (_SHOWN_BYTES, 1_000, _SHOWN_CALL_BYTES)
"""Of what the agent said: less where all would be too much."""
STEPS_LEFT_OUT = "[Some steps of the agent between these are left out.]"


def render_steps(history: Sequence[RecordedMessage]) -> str:
    """A conversation as text, for a model that is not shown the conversation itself. Where it is too long,
    what the agent said is shortened first, then its earlier steps are left out."""
    recent = len(history) - _SHOWN_MESSAGES
    steps: list[str] = []
    for agent_bytes in _AGENT_BYTES:
        steps = [
            _render_step(one.message, agent_bytes, is_recent=at >= recent) for at, one in enumerate(history)
        ]
        if sum(map(_count_bytes, steps)) <= MAX_LOOK_BYTES:
            return "\n\n".join(filter(None, steps))
    own = [bool(extract_user_words(one.message)) for one in history]
    shown, left = set[int](), MAX_LOOK_BYTES
    for at in sorted(range(len(steps)), key=lambda at: (own[at], at), reverse=True):
        left -= _count_bytes(steps[at])
        if left < 0:
            break
        shown.add(at)
    return "\n\n".join([STEPS_LEFT_OUT, *(steps[at] for at in sorted(shown) if steps[at])])


def split_looks(new: Sequence[RecordedMessage]) -> Iterator[Sequence[RecordedMessage]]:
    """These messages in parts, whole turns each, of which a model can be shown all that the user said."""
    start = own_bytes = 0
    for at, one in enumerate(new):
        said = min(_SHOWN_BYTES, _count_bytes(extract_user_words(one.message)))
        if said and own_bytes + said > MAX_OWN_BYTES:
            yield new[start:at]
            start, own_bytes = at, 0
        own_bytes += said
    yield new[start:]


def _count_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _render_step(message: Message, agent_bytes: int, *, is_recent: bool) -> str:
    who = {"user": "The user", "assistant": "The agent"}.get(message.role, "A program")
    most = _SHOWN_BYTES if message.role == "user" else agent_bytes
    parts: list[str] = []
    for block in message.blocks:
        match block:
            case Text():
                parts.append(f"{who} says: {truncate_bytes(block.text, most)}")
            case ToolUse() if is_recent:
                given = truncate_bytes(write_json(block.input).decode(), _SHOWN_CALL_BYTES)
                parts.append(f"The agent calls {block.name} with {given}")
            case ToolResult() if is_recent:
                said = block.content if isinstance(block.content, str) else "…"
                parts.append(f"The tool returns: {truncate_bytes(said, _SHOWN_CALL_BYTES)}")
            case _:
                pass
    return "\n".join(parts)


@dataclass(slots=True)
class ExtractionRun:
    """The result of one search."""

    topic: Topic
    admitted: dict[str, AdmittedDraft] = field(default_factory=dict[str, AdmittedDraft])
    refused: int = 0


class StatementReader:
    """Reads what a user stated. Does no I/O, and takes a while on a long conversation."""

    def __init__(self, session: str, memories: MemorySnapshot, emit: Emit) -> None:
        self._session, self._memories, self._emit = session, memories, emit

    def read(
        self,
        context: GateContext,
        snapshot: ConversationSnapshot,
        new: Sequence[RecordedMessage],
        topic: Topic,
    ) -> ExtractionRun:
        """What the new messages teach, after what the conversation had decided before."""
        run = ExtractionRun(topic)
        for said in _turns(snapshot.history, new):
            learnt = apply_turn(run.topic, said)
            run.topic = learnt.topic
            for draft in learnt.alone:
                self._admit(run, draft, context)
            if learnt.has_decided:
                amended = self._find_amended(said, run.topic) if learnt.amends else None
                self._admit_topic(run, context, amended)
        return run

    def _admit_topic(self, run: ExtractionRun, context: GateContext, amended: KnownMemory | None) -> None:
        if amended is not None:
            run.topic = retarget_topic(run.topic, amended.memory)
        elif (there := self._memories.find(run.topic.key)) and not _is_related(run.topic, there):
            slug = choose_free_slug(run.topic.key.removesuffix(".md"), context.keys)
            run.topic = replace(run.topic, key=f"{slug}.md")
        run.topic = _trimmed(run.topic, context.sources)
        if not run.topic.statements and not run.topic.recap:
            return
        draft = render_topic(run.topic)
        found = check_draft(draft, context, may_drop=True)
        if isinstance(found, RefusedDraft) and found.rule == "contradicts":
            other = self._memories.find(found.other)
            run.topic = retarget_topic(run.topic, other.memory) if other else run.topic
            draft = render_topic(run.topic)
        self._admit(run, draft, context)

    def _admit(self, run: ExtractionRun, draft: MemoryDraft, context: GateContext) -> None:
        found = check_draft(draft, context, may_drop=True)
        if isinstance(found, RefusedDraft) and found.rule == "contradicts":
            # The user said it just now: it takes the old one's place, whose text stays in history.
            other = self._memories.find(found.other)
            amended = merge_uncontradicted(draft, other.memory) if other else draft
            found = check_draft(amended, context, may_drop=True)
        elif isinstance(found, RefusedDraft) and found.rule == "other topic":
            slug = choose_free_slug(draft.key.removesuffix(".md"), context.keys)
            found = check_draft(replace(draft, key=f"{slug}.md", name=slug), context, may_drop=True)
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
        for known in self._memories.near(text):
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


def _trimmed(topic: Topic, sources: ConversationSources) -> Topic:
    """Without what holds more than the user's own words, where a stranger may have said it."""
    if not sources.taints:
        return topic
    recap = "" if sources.attribute(topic.recap).taint else topic.recap
    own = tuple(text for text in topic.statements if not sources.attribute(text).taint)
    return replace(topic, recap=recap, statements=own)


def _is_related(topic: Topic, there: KnownMemory) -> bool:
    memory = there.memory
    shared = topic.words & find_content_stems(f"{memory.description}\n{memory.body}")
    return len(shared) >= AMENDED_WORDS


def find_amended_subject(own: str) -> str:
    """Of what an amendment amends the policy or rule: "retry"; empty where it does not say."""
    found = _SUBJECT.search(own)
    return found["what"].strip() if found else ""
