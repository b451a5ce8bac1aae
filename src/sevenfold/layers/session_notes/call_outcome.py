"""How a tool call ended, from the first and last lines of its result."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sevenfold.core.messages import Text, ToolResult

HEAD_CHARS = 3_000
TAIL_CHARS = 1_200
"""A result is looked at where it begins and where it ends: work that does not grow with its size."""

ERROR_CHARS = 320
_EXIT = re.compile(
    r"(?:^|\n)\s*(?:Process exited with code|Exit code:?|exit_code\"?:|exit status)\s*(-?\d+)", re.I
)
_ENDED_BADLY = re.compile(r"FAIL(?:ED)?\b|make: \*\*\*|.*\bERROR task failed|=+ .*\b\d+ failed\b")
"""How a command ends that failed behind a pipe, whose exit code is another's."""
_WRAPPING = re.compile(r"</?tool_use_error>")
_BROKEN = re.compile(
    r"error|fail|panic|fatal|exception|denied|not found|undefined|cannot|traceback|unexpected|invalid",
    re.IGNORECASE,
)
_ENVELOPE = re.compile(r"(?:Chunk ID|Wall time|Process exited|Original token count|Exit code|Output)\b.*")
_SAID = re.compile(r"the user said:\n(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    failed: bool
    error: str = ""
    """The first lines that say what went wrong; empty when nothing did."""
    last: str = ""
    """The last line: where most commands say how they ended."""
    text: str = ""
    """All of it, as it came."""
    said: str = ""
    """What the user said when they refused the call."""


def find_call_outcome(result: ToolResult) -> CallOutcome:
    """Costs the same for a line and for a megabyte."""
    text = _text(result)
    head, tail = text[:HEAD_CHARS], text[-TAIL_CHARS:]
    said = _SAID.search(head) if result.is_error else None
    code = _EXIT.search(head[:400])
    last = _last_line(tail)
    failed = bool(result.is_error) or (code is not None and code[1] != "0") or bool(_ENDED_BADLY.match(last))
    return CallOutcome(
        failed=failed,
        error=_error(head, tail) if failed else "",
        last=last,
        text=text,
        said=said[1].strip() if said else "",
    )


def _text(result: ToolResult) -> str:
    content = result.content
    if isinstance(content, str):
        return content
    return "\n".join(item.text for item in content or () if isinstance(item, Text))


def _error(head: str, tail: str) -> str:
    """The lines that name the fault, or the first ones where none does."""
    text = head if len(head) < HEAD_CHARS else f"{head}\n{tail}"
    lines = [line.strip() for line in _WRAPPING.sub("", text).splitlines()]
    lines = [line for line in lines if line and not _ENVELOPE.fullmatch(line)]
    telling = [line for line in lines if _BROKEN.search(line)]
    chosen: list[str] = []
    for line in telling[:4] or lines[:3]:
        if sum(map(len, chosen)) + len(line) > ERROR_CHARS and chosen:
            break
        chosen.append(line[:ERROR_CHARS])
    return " / ".join(chosen)


def _last_line(tail: str) -> str:
    lines = tail.rstrip().rsplit("\n", 1)
    line = lines[-1].strip()
    return "" if _ENVELOPE.fullmatch(line) else line
