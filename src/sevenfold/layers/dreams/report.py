"""What a dream says for itself: the reasons in its answer, and what the fork is shown to begin with."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from difflib import unified_diff

from sevenfold.core.memories import ARCHIVE_PREFIX, Memory
from sevenfold.layers.dreams.check import REMOVAL_CAUSES, RemovalCause, RemovalReason

REMOVAL_MARK = "LET GO"

_LINE = re.compile(
    rf"[\s*`>-]*{REMOVAL_MARK}[\s:*`]+(?P<key>[^\s:`]+)`?\s*[:,]\s*(?P<reason>.+)",
    re.IGNORECASE,
)
_REASON = re.compile(
    rf"\s*(?P<why>{'|'.join(REMOVAL_CAUSES)})(?:\s+(?:of|in|by|with)\s+`?(?P<of>[^\s:;,`]+)`?)?"
    r"(?:\s*[:;,]\s*[\"“](?P<fact>[^\"”]*)[\"”])?(?:\s*[:;,.–—-]+\s*(?P<note>.*))?\s*",
    re.IGNORECASE | re.DOTALL,
)


def parse_removal_reasons(answer: str) -> tuple[RemovalReason, ...]:
    """The lines of an answer that say what was let go of, and why; others are words."""
    lines = (_LINE.fullmatch(line) for line in answer.splitlines())
    found = (parse_removal_reason(with_md_suffix(line["key"]), line["reason"]) for line in lines if line)
    return tuple(reason for reason in found if reason)


def parse_removal_reason(key: str, text: str) -> RemovalReason | None:
    """`duplicate of other.md`, `contradicted by other.md: "the fact"`, `stale: "the fact": since when`."""
    match = _REASON.fullmatch(text)
    if match is None:
        return None
    why: RemovalCause = next(each for each in REMOVAL_CAUSES if each == match["why"].lower())
    of = with_md_suffix(match["of"].rstrip(".")) if match["of"] else ""
    return RemovalReason(
        key=key, why=why, of=of, fact=(match["fact"] or "").strip(), note=(match["note"] or "").strip()
    )


def render_memory_diff(before: Mapping[str, str], after: Mapping[str, str], keys: Collection[str]) -> str:
    """What changes in these files, as a person reads it; a file that only moves is one line."""
    moved = {
        key: f"{ARCHIVE_PREFIX}{key}"
        for key in keys
        if before.get(key) == after.get(f"{ARCHIVE_PREFIX}{key}", "")
    }
    parts: list[str] = []
    for key in sorted({*keys} - {*moved.values()}):
        if key in moved:
            parts.append(f"{key} is put aside as {moved[key]}\n")
            continue
        old, new = before.get(key, ""), after.get(key, "")
        names = (key if key in before else "/dev/null", key if key in after else "/dev/null")
        lines = unified_diff(old.splitlines(), new.splitlines(), *names, lineterm="")
        parts.append("".join(f"{line}\n" for line in lines))
    return "\n".join(parts)


def with_md_suffix(name: str) -> str:
    """People and models leave it out."""
    return name if name.endswith(".md") else f"{name}.md"


def render_dream_manifest(memories: Iterable[tuple[Memory, date]]) -> str:
    """One line a memory: what it is, since when, and when it matters."""
    return "\n".join(
        f"- [{memory.kind or 'memory'}] {memory.key} ({day.isoformat()}): {memory.description[:200]}"
        for memory, day in memories
    )
