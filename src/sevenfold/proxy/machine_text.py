"""What in the messages of a user no person said: agents write into them too.

Reminders, attached files, the output of commands and summaries come with marks that are known. The text of a
command, prompt or instruction file of a project comes without any, so it is compared with those files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from sevenfold.core.errors import SevenfoldError
from sevenfold.core.messages import Message, Text
from sevenfold.proxy.profiles import AgentProfile
from sevenfold.store.project.instructions import CachedFileReader

_EVERYTHING = re.compile(r".+", re.DOTALL)
_REMINDER_TAG = "system-reminder"

_ATTACHED = re.compile(
    r"^[ \t]*(?:"
    r"Called the [\w.-]+ tool with the following input:|Reading MCP resource: "  # opencode
    r"|--- Content from referenced files ---|Content from @\S+:"  # qwen
    r"|Ran `|```(?=[^\n`]*$)[^\n`./]*[./]"  # pi, Continue
    r"|I ran this command:|Here is the content of \S+:$|Here are some READ ONLY files"  # aider, from here on
    r"|I (?:have \*)?added these files to the chat|# Fix any errors below"
    r"|Here are summaries of some files|I am not sharing any files"
    r"|Don't try and edit any existing code|I spoke to you previously about a number of things"
    r"|# \*SEARCH/REPLACE block\* Rules:|# File editing rules:|# V4A |To suggest changes to a file you MUST"
    r")",
    re.MULTILINE,
)
"""How text of a file or a command begins. What comes before it in a message a person may have said; where it
ends, only the file can tell."""


def strip_machine_text(messages: Iterable[Message], profile: AgentProfile) -> list[Message]:
    """The messages with nothing in the user's but what a person said, as far as marks tell."""
    tags = [_REMINDER_TAG, *profile.machine_tags, *([profile.moving_tag] if profile.moving_tag else [])]
    patterns = [re.compile(pattern, re.DOTALL) for pattern in profile.machine_texts]
    marks = [re.compile(mark) for mark in profile.machine_marks]
    return [
        _strip(message, [_EVERYTHING]) if _has_mark(message, marks) else _strip(message, patterns, tags)
        for message in messages
    ]


def _has_mark(message: Message, marks: Sequence[re.Pattern[str]]) -> bool:
    texts = [block.text for block in message.blocks if isinstance(block, Text)]
    return any(mark.search(text) for mark in marks for text in texts)


def _strip(message: Message, patterns: Sequence[re.Pattern[str]], tags: Sequence[str] = ()) -> Message:
    if message.role != "user":
        return message
    blocks = [
        replace(block, text=text) if isinstance(block, Text) else block
        for block, text in zip(message.blocks, _kept_texts(message, patterns, tags), strict=True)
    ]
    return replace(message, content=tuple(one for one in blocks if not isinstance(one, Text) or one.text))


def _kept_texts(message: Message, patterns: Sequence[re.Pattern[str]], tags: Sequence[str]) -> Iterator[str]:
    """What is left of each block; nothing of those behind an attached text."""
    is_attached = False
    for block in message.blocks:
        text = "" if is_attached or not isinstance(block, Text) else block.text
        for tag in tags:
            text = _without_tag(text, tag)
        for pattern in patterns:
            text = pattern.sub("", text)
        attached = _ATTACHED.search(text)
        if attached is not None:
            is_attached, text = True, text[: attached.start()]
        yield text.strip()


def _without_tag(text: str, tag: str) -> str:
    """Without what stands in this tag, to its last end: text of a file inside may hold one, too.

    A regular expression would search the whole text again at each tag that is opened and never closed.
    """
    start, end = text.find(f"<{tag}>"), text.rfind(f"</{tag}>")
    return text[:start] + text[end + len(f"</{tag}>") :] if 0 <= start < end else text


# Texts of a project that an agent sends as if a person had typed them.

_PROMPT_FOLDERS = (
    *(".opencode", ".qwen", ".gemini", ".pi", ".continue", ".goose", ".claude", ".codex", ".cursor", ".roo"),
    *(".agents", ".agent", ".clinerules", ".windsurf", ".junie", ".github/prompts", ".github/instructions"),
)
_PROMPT_FILES = (
    *("AGENTS.md", "AGENT.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", "QWEN.md", "CONVENTIONS.md"),
    *(".goosehints", ".cursorrules", ".windsurfrules", ".clinerules", ".github/copilot-instructions.md"),
)
_PROMPT_SUFFIXES = (".md", ".mdc", ".toml", ".yaml", ".yml", ".txt", ".prompt")
MAX_PROMPT_FILES = 200
"""A project has a few. Those of a folder with more are read in the order of their names."""
_MAX_ENTRIES = 5_000
_PLACEHOLDER = re.compile(r"\$ARGUMENTS|\$[@\d]|\$?\{[^{}\n]*\}|[@!]\{[^{}\n]*\}|!`[^`\n]*`|\{\{[^{}\n]*\}\}")
_MIN_LETTERS = 3
_MIN_PART_CHARS = 8
"""Of what stands beside a placeholder: less may stand anywhere."""


@dataclass(frozen=True, slots=True)
class ProjectPrompts:
    """The lines of a project's prompts."""

    lines: frozenset[str] = frozenset()
    parts: tuple[str, ...] = ()
    """Of lines with a place for something else: what stands beside it."""

    def hold(self, message: Message) -> bool:
        """Whether a message has a line of theirs in it."""
        texts = [block.text for block in message.blocks if isinstance(block, Text)]
        lines = {_normalize_spaces(line) for text in texts for line in text.splitlines()}
        return not lines.isdisjoint(self.lines) or any(part in line for part in self.parts for line in lines)

    def strip(self, messages: Iterable[Message]) -> list[Message]:
        """The messages without the texts of those that are not a person's own."""
        return [
            _strip(message, [_EVERYTHING]) if message.role == "user" and self.hold(message) else message
            for message in messages
        ]


@dataclass(slots=True)
class PromptReader:
    """Reads the prompts of projects; a file that has not changed is not read again. Blocks on the disk."""

    _files: CachedFileReader = field(default_factory=CachedFileReader)

    def read(self, project: Path) -> ProjectPrompts:
        lines: set[str] = set()
        parts: set[str] = set()
        for path in islice(_list_prompts(project), MAX_PROMPT_FILES):
            try:
                text = self._files.read(path, (project,)).text
            except SevenfoldError:
                continue  # it is not there, or nothing that an agent could read as a prompt
            for line in text.splitlines():
                found = [_normalize_spaces(part) for part in _PLACEHOLDER.split(line)]
                if len(found) > 1:
                    parts |= {part for part in found if len(part) >= _MIN_PART_CHARS}
                elif sum(map(str.isalpha, found[0])) >= _MIN_LETTERS:
                    lines.add(found[0])
        return ProjectPrompts(frozenset(lines), tuple(sorted(parts)))


def _list_prompts(project: Path) -> Iterator[Path]:
    yield from (project / name for name in _PROMPT_FILES)
    for name in _PROMPT_FOLDERS:
        yield from islice(_walk(project / name), _MAX_ENTRIES)


def _walk(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        yield from (Path(place, name) for name in sorted(names) if name.endswith(_PROMPT_SUFFIXES))


def _normalize_spaces(line: str) -> str:
    """A line as it is compared: a heading, a list or a value of TOML may stand in it."""
    return " ".join(line.strip(" \t\"'#>*-").casefold().split())
