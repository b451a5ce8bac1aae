"""A conversation as markdown, for `/export`. What looks like a secret is left out."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sevenfold.agent.sandbox.command import list_secret_variables
from sevenfold.core.json import write_json
from sevenfold.core.messages import Block, Image, Message, Text, ToolResult, ToolUse
from sevenfold.core.secrets import MAX_SCAN_CHARS, find_secrets, has_re2

_KEY = secrets.token_bytes(16)
"""Of fingerprints, which nobody looks at."""
LEAST_SECRET_CHARS = 8
"""Of the value of a variable: a shorter one stands in ordinary text too."""
_KEY_BEGIN, _PRIVATE_KEY, _KEY_END = "-----BEGIN", "PRIVATE KEY", "-----END"


@dataclass(slots=True)
class SecretMask:
    """Leaves out lines with a secret in them, and the values of variables that hold one."""

    environ: Mapping[str, str]
    hidden: int = 0
    """Lines that were left out, and values."""
    _values: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        names = list_secret_variables(self.environ)
        values = {self.environ[name]: name for name in names}
        self._values = {value: name for value, name in values.items() if len(value) >= LEAST_SECRET_CHARS}

    @property
    def is_complete(self) -> bool:
        """Whether lines are looked through at all, which takes a package."""
        return has_re2()

    def mask(self, text: str) -> str:
        for value, name in self._values.items():
            self.hidden += text.count(value)
            text = text.replace(value, f"[the value of {name}]")
        lines = text.split("\n")
        found = dict(self._find(text))
        shown: list[str] = []
        is_key = False
        for number, line in enumerate(lines, 1):
            if is_key:
                is_key = _KEY_END not in line
            elif _KEY_BEGIN in line and _PRIVATE_KEY in line:
                # All of it goes, and no line that a scan would look at by itself.
                self.hidden, is_key = self.hidden + 1, _KEY_END not in line
                shown.append("[a private key is left out]")
            elif name := found.get(number):
                self.hidden += 1
                shown.append(f"[a line is left out: {name}]")
            else:
                shown.append(line)
        return "\n".join(shown)

    def _find(self, text: str) -> Sequence[tuple[int, str]]:
        """The lines that hold a secret, and what kind it is."""
        if not has_re2():
            return ()
        found: list[tuple[int, str]] = []
        first, part, size = 1, list[str](), 0
        for line in [*text.split("\n"), None]:
            if line is None or size + len(line) > MAX_SCAN_CHARS:
                scanned = find_secrets("\n".join(part)[:MAX_SCAN_CHARS], key=_KEY)
                found += [(first + one.line - 1, one.name) for one in scanned.findings]
                first, part, size = first + len(part), [], 0
            if line is not None:
                part.append(line)
                size += len(line) + 1
        return found


def render_markdown_export(history: Sequence[Message], mask: SecretMask) -> str:
    """What was said and done, for a person to read."""
    parts: list[str] = []
    for message in history:
        for block in message.blocks:
            parts += _render_block(message, block, mask)
    return "\n\n".join(parts) + ("\n" if parts else "")


def _render_block(message: Message, block: Block, mask: SecretMask) -> list[str]:
    match block:
        case Text() if block.text.strip():
            heading = {"user": "You", "assistant": "Agent"}.get(message.role, "Note")
            return [f"## {heading}\n\n{mask.mask(block.text.strip())}"]
        case ToolUse():
            return [f"### Tool {block.name}\n\n{_fence(mask.mask(_write_input(block)))}"]
        case ToolResult():
            content = mask.mask(_write_result(block).strip())
            failed = ["The call failed:"] if block.is_error else []
            return [*failed, _fence(content)] if content else failed
        case Image():
            return ["[an image]"]
        case _:
            return []


def _write_input(use: ToolUse) -> str:
    """One value after the other, and texts as they are."""
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else write_json(value).decode()}"
        for name, value in use.input.items()
    )


def _write_result(result: ToolResult) -> str:
    if isinstance(result.content, str):
        return result.content
    return "\n".join(
        block.text if isinstance(block, Text) else f"[{type(block).__name__.lower()}]"
        for block in result.content or ()
    )


def _fence(text: str) -> str:
    marks = "```"
    while marks in text:
        marks += "`"
    return f"{marks}\n{text}\n{marks}"
