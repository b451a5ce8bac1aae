"""Layer 5, extraction: when a turn is searched for what is worth remembering, and the brief of the fork that
does it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import ClassVar, Literal

from sevenfold.core.memories import INDEX_FILE, Memory
from sevenfold.core.messages import Message, Text, ToolResult, ToolUse
from sevenfold.core.settings import amount, choice, limit, switch
from sevenfold.core.text.safe_text import fence_text
from sevenfold.core.tool_kinds import MEMORY_WRITERS, OWN_READERS, PATH_KEYS, changes_memory, find_effect
from sevenfold.layers.compaction.summary import is_summary_head
from sevenfold.layers.forks.policy import ForkBrief, ToolPermit
from sevenfold.layers.memory.extraction.statements import find_statements, is_agreement
from sevenfold.layers.memory.trust.taint import strip_pasted_text

EXTRACTION_KIND = "extraction"
MAX_EXTRACTION_ROUNDS = 5
"""One to read, one to write, and the rest to correct a draft that was refused."""

_CUE = re.compile(
    r"\b(?:remember|prefer|always|never|don't|do not|stop|instead|rather|decided|agreed|policy|rule|"
    r"convention|"
    r"deadline|freeze|because|our|we use|we're|we are|the team|stakeholders?|i'm|i am|my|actually|wrong|"
    r"correct)\b",
    re.IGNORECASE,
)
MIN_CUE_WORDS = 5
"""A shorter message that holds such a word is a remark on the work."""


@dataclass(frozen=True, slots=True)
class ExtractionSettings:
    SECTION: ClassVar[str] = "extraction"

    enabled: bool = switch(True)
    """On: what a user says about how to work is of no use to the next session unless somebody keeps it."""

    writer: str = choice("auto", "auto", "model", "rules")
    """Auto: a fork of the conversation, after turns in which the user said something that could be
    worth it. Model: a fork after every turn. Rules: no model; only what is stated in so many words."""

    every_turns: int = amount(1, at_least=1)
    """What was said is freshest in the turn in which it was said, and the prefix is warm then."""

    rounds: int = limit(MAX_EXTRACTION_ROUNDS, at_least=1, at_most=MAX_EXTRACTION_ROUNDS)
    """Model calls of one fork: one to read, one to write, the rest to correct refused drafts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionFacts:
    """What is known when a turn has ended."""

    turns: int
    """Since the last look, this one included."""
    wrote_memory: bool = False
    """The main agent itself wrote memory in them."""
    has_words: bool = True
    """The user said something in words of their own."""
    has_cue: bool = True
    """Something among them could be worth remembering."""
    has_model: bool = True


ExtractionStep = Literal["wait", "pass", "skip", "fork", "rules"]
"""`pass`: there is nothing to find. `skip`: the main agent has already written memory itself."""


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
    return "fork" if facts.has_cue or settings.writer == "model" else "pass"


def has_cue(own: str, *, is_answer: bool) -> bool:
    """Whether a user's own words could hold something worth remembering: cheap, and rather too often "
    "yes."""
    if is_agreement(own) or find_statements(own, is_answer=is_answer):
        return True
    return len(own.split()) >= MIN_CUE_WORDS and bool(_CUE.search(own))


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


def render_memory_manifest(listed: Iterable[ListedMemory]) -> str:
    """A line for each memory, so that the fork spends no call on listing."""
    lines = [
        f"- [{item.memory.kind or 'memory'}] {item.memory.key} ({item.modified:%Y-%m-%dT%H:%M}): "
        f"{item.memory.description}"
        for item in listed
    ]
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
    return ForkBrief(kind=EXTRACTION_KIND, directive=directive, allow=permits, max_rounds=task.rounds)
