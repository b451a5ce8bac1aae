"""What may follow what was typed: the names of commands, and paths after an @."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from sevenfold.agent.tui.slash_commands import SLASH_COMMANDS

MAX_COMPLETIONS = 50
"""Candidates that a person may still look through."""
_MOST_SCANNED = 5_000
_AT = re.compile(r"(?:^|\s)@(\S*)$")


@dataclass(frozen=True, slots=True)
class CompletionCandidate:
    text: str
    replaces: int
    """How many characters before the cursor it stands for."""
    remark: str = ""


def list_completions(before: str, cwd: Path) -> tuple[CompletionCandidate, ...]:
    """For the text before the cursor, the best first; looks into folders, and at nothing in them."""
    if before.startswith("/") and " " not in before and "/" not in before[1:]:
        word = before[1:].lower()
        names = (slash for slash in SLASH_COMMANDS if slash.name.startswith(word))
        return tuple(CompletionCandidate(f"/{slash.name}", len(before), slash.help) for slash in names)
    mention = _AT.search(before)
    return _list_paths(mention[1], cwd) if mention else ()


def _list_paths(typed: str, cwd: Path) -> tuple[CompletionCandidate, ...]:
    folder, _, start = typed.rpartition("/")
    shown = f"{folder}/" if "/" in typed else ""
    found: list[str] = []
    try:
        with os.scandir(cwd / Path(shown or ".").expanduser()) as entries:
            for at, entry in enumerate(entries):
                if at == _MOST_SCANNED:
                    break
                if entry.name.lower().startswith(start.lower()) and _is_wanted(entry.name, start):
                    found.append(entry.name + ("/" if entry.is_dir() else ""))
    except OSError:
        return ()
    best = sorted(found, key=lambda name: (name.startswith("."), name.lower()))[:MAX_COMPLETIONS]
    return tuple(CompletionCandidate(shown + name, len(typed)) for name in best)


def _is_wanted(name: str, start: str) -> bool:
    """Hidden files only for whoever asks for them; names with spaces could not be told from two words."""
    return (start.startswith(".") or not name.startswith(".")) and not re.search(r"\s", name)
