"""Layer 5, extraction: when a turn is searched for what is worth remembering, the brief of the fork that does
it, and how statements of the user become memories."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from sevenfold.core.memories import INDEX_FILE, Memory
from sevenfold.core.messages import Message, Text, ToolResult, ToolUse
from sevenfold.core.prices import NO_COST, Cost, sum_costs
from sevenfold.core.text.facts import covers_fact, parse_fact
from sevenfold.core.text.safe_text import fence_text
from sevenfold.core.text.stems import (
    UNSPACED_CHARS,
    find_content_stems,
    make_slug,
    split_sentences,
    truncate_words,
)
from sevenfold.core.tool_kinds import MEMORY_WRITERS, OWN_READERS, PATH_KEYS, changes_memory, find_effect
from sevenfold.layers.compaction.summary import is_summary_head
from sevenfold.layers.forks.policy import ForkBrief, ToolPermit
from sevenfold.layers.memory.extraction.gate import MAX_DRAFT_DESCRIPTION_CHARS, MemoryDraft
from sevenfold.layers.memory.extraction.settings import (
    EXTRACTION_KIND,
    MAX_EXTRACTION_ROUNDS,
    ExtractionSettings,
)
from sevenfold.layers.memory.extraction.statements import (
    MIN_DECISION_WEIGHT,
    Statement,
    StatementKind,
    find_answer,
    find_statements,
    is_agreement,
    is_response,
    weigh_decision,
)
from sevenfold.layers.memory.trust.replies import COURTESIES, says_only_thanks
from sevenfold.layers.memory.trust.taint import strip_pasted_text
from sevenfold.layers.memory.trust.tokens import fold_word, read_word_set

MIN_TAUGHT_WORDS = 3
"""Fewer are a go-ahead or a remark, in any language: "go on", "weiter", "sí, gracias"."""
MIN_LAST_WORDS = 2
"""The same when the session ends and nothing follows: "use pnpm" may be a rule. One word is none."""
_UNSPACED = re.compile(UNSPACED_CHARS)
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
HAN_CHARS_PER_WORD, UNSPACED_CHARS_PER_WORD = 2, 4
"""Of scripts that put few or no spaces between words: Chinese characters, and kana, Hangul and Thai."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionFacts:
    """What is known when a turn has ended."""

    turns: int
    """Since the last look, this one included."""
    wrote_memory: bool = False
    """The main agent itself wrote memory in them."""
    has_words: bool = True
    """The user said something in words of their own."""
    has_substance: bool = True
    """They are more than a go-ahead."""
    has_model: bool = True
    spent: ExtractionSpend | None = None
    """None: no price is known, or there is no later look that a turn could wait for."""


_NOTHING = Decimal()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionSpend:
    """What a session has cost so far."""

    own_usd: Decimal = _NOTHING
    """Of that, what extraction was billed."""
    session_usd: Decimal = _NOTHING
    look_usd: Decimal = _NOTHING
    """What the dearest look of this session took so far."""

    def is_dear(self, percent: int) -> bool:
        """Whether one more look now, and the one at the end of the session that a later turn may need, are
        together more than extraction may take."""
        return self.own_usd + 2 * self.look_usd > max(FREE_USD, self.session_usd * percent / 100)


def add_extraction_spend(costs: Mapping[str, Cost | None]) -> ExtractionSpend | None:
    """What a session has cost, by whose calls they were; None where a price is not known."""
    whole = sum_costs(costs.values())
    own = costs.get(EXTRACTION_KIND, NO_COST)
    if whole is None or own is None:
        return None
    return ExtractionSpend(own_usd=own.total, session_usd=whole.total)


FREE_USD = Decimal("0.05")
"""What forks may take of any session: of one that costs less than a dollar, waiting saves a cent or two."""

ExtractionStep = Literal["wait", "pass", "skip", "defer", "fork", "rules"]
"""`pass`: nothing can have been taught. `skip`: the main agent has already written memory itself. `defer`:
extraction has cost its share of the session, and the turn is looked through with a later one."""


def choose_extraction_step(facts: ExtractionFacts, settings: ExtractionSettings) -> ExtractionStep:
    """What to do about the turns since the last search."""
    if not settings.enabled or facts.turns < settings.every_turns:
        return "wait"
    if facts.wrote_memory:
        return "skip"
    if not facts.has_words:
        return "pass"
    if settings.writer == "rules" or not facts.has_model:
        return "rules"
    if not facts.has_substance and settings.writer != "model":
        return "pass"
    return "defer" if facts.spent and facts.spent.is_dear(settings.session_percent) else "fork"


_CLOSING_WORDS = COURTESIES | read_word_set(
    "cool good job well done awesome excellent lovely yes bye goodbye that all for now is it s schön sehr "
    "toll tschüss parfait bravo perfecto adiós perfeito perfetto ciao 好的 감사합니다 고마워 고마워요"
)
"""Thanks, and what else ends a session. Beside a sentence it may be a judgement of that ("Is that all?")."""


def is_courtesy(text: str) -> bool:
    """Whether it is thanks, or a greeting, and nothing else."""
    return says_only_thanks(text) or all(
        fold_word(word) in _CLOSING_WORDS for word in re.findall(r"\w+", text)
    )


def has_substance(own: str, min_words: int = MIN_TAUGHT_WORDS) -> bool:
    """Whether a user's own words are more than a go-ahead. It counts words and knows none of them, because a
    user may teach in any language."""
    han = len(_HAN.findall(own))
    others = len(_UNSPACED.findall(own)) - han
    spaced = sum(any(map(str.isalpha, part)) for part in _UNSPACED.sub(" ", own).split())
    return spaced + han / HAN_CHARS_PER_WORD + others / UNSPACED_CHARS_PER_WORD >= min_words


def extract_user_words(message: Message) -> str:
    """The user's own words in a message; empty if a tool, a program or another agent wrote it."""
    if message.role != "user" or is_summary_head(message):
        return ""
    texts = (block.text for block in message.blocks if isinstance(block, Text))
    own = (strip_pasted_text(text) for text in texts if not text.lstrip().startswith("<"))
    return "\n\n".join(part for part in own if part)


def has_memory_write(messages: Sequence[Message], folder: str) -> bool:
    """Whether the agent itself wrote memory, with a tool call that succeeded."""
    failed = {
        block.tool_use_id
        for message in messages
        for block in message.blocks
        if isinstance(block, ToolResult) and block.is_error
    }
    uses = (block for message in messages for block in message.blocks if isinstance(block, ToolUse))
    return any(use.id not in failed and _writes(use, folder) for use in uses)


def _writes(use: ToolUse, folder: str) -> bool:
    effect = find_effect(use)
    if effect == "memory":
        return changes_memory(use)
    paths = (use.input.get(key) for key in PATH_KEYS)
    named = [path for path in paths if isinstance(path, str) and path.startswith(f"{folder.rstrip('/')}/")]
    return bool(named) and effect not in ("read", "list", "search")


@dataclass(frozen=True, slots=True)
class ListedMemory:
    """A memory as the manifest shows it."""

    memory: Memory
    modified: datetime


def render_memory_manifest(listed: Iterable[ListedMemory], *, others: int = 0) -> str:
    """A line for each memory, so that the fork spends no call on listing. `others` are not listed."""
    lines = [
        f"- [{item.memory.kind or 'memory'}] {item.memory.key} ({item.modified:%Y-%m-%dT%H:%M}): "
        f"{item.memory.description}"
        for item in listed
    ]
    if others:
        lines.append(f"and {others:,} more, which have less in common with what was said")
    return "\n".join(lines) or "nothing yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionTask:
    """What a fork is to search."""

    messages: int
    manifest: str
    tool: str
    today: date
    tools: tuple[str, ...]
    """What the conversation declares of what a fork may use."""
    rounds: int = MAX_EXTRACTION_ROUNDS


def build_extraction_brief(task: ExtractionTask, prompt: str) -> ForkBrief:
    """The fork that writes memories: it may read, and a gate checks what it writes."""
    filled = {
        "messages": str(task.messages),
        "today": task.today.isoformat(),
        "tool": task.tool,
        "manifest": fence_text("memory-index", task.manifest, label=INDEX_FILE),
    }
    directive = re.sub(r"\{(\w+)\}", lambda match: filled.get(match[1], match[0]), prompt)
    permits = tuple(ToolPermit(name) for name in (*OWN_READERS, *MEMORY_WRITERS) if name in task.tools)
    return ForkBrief(
        kind=EXTRACTION_KIND,
        directive=directive,
        allow=permits,
        max_rounds=task.rounds,
        ends_when_written=True,
    )


# Statements become memories: one for each that stands for itself, and one for what a conversation decided,
# which grows turn by turn. An amendment takes the place of what it amends; history keeps that.

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

_ALONE: dict[StatementKind, str] = {
    "rule": "feedback",
    "about you": "user",
    "fact": "project",
    "pointer": "reference",
}


_SETTLED = re.compile(
    r"[*_]*(?:settled|final|agreed|amend(?:ed|ing)|decision|(?:so )?the rule)\b", re.IGNORECASE
)
_RECAP = re.compile(
    r"^(?:settled|final|agreed|amend(?:ed|ing)|so:|to (?:sum|recap)|recap|summary|understood|got it|"
    r"in short|confirmed|"
    r"decision|locked|so the rule|the rule)\b",
    re.IGNORECASE,
)


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
    weight = sum(map(weigh_decision, grown.statements)) + weigh_recap(grown.recap)
    if not grown.key and weight < MIN_DECISION_WEIGHT:
        return TurnOutcome(grown, alone)
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


def find_recap(answer: str) -> str:
    """Where an assistant says in full what was settled: its words; empty where it does not."""
    for paragraph in re.split(r"\n\s*\n", answer):
        line = " ".join(paragraph.split())
        if _RECAP.match(line.lstrip("*_ ")) and len(find_content_stems(line)) >= 6 and "?" not in line[-2:]:
            return line
    return ""


def weigh_recap(recap: str) -> int:
    """The same of an assistant's recap: one that says that it is settled counts for more."""
    return 2 if _SETTLED.match(recap) else int(bool(recap))
