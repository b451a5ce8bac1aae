"""A person's own words in what they sent: without code, quotes, logs and pages that they pasted.

What is left out is not lost, it only counts as somebody else's. In doubt it is left out: a rule that is not
learnt can be said again.
"""

from __future__ import annotations

import re

PASTE_CHARS = 1_500
"""Nobody types a paragraph of this length to an agent."""
PASTE_LINES = 12
"""Nor that many lines on end without an empty one."""
_MAX_CHARS = 20_000
"""A message is looked at up to here: what is longer is pasted."""
QUOTED_WORDS = 4
"""Between quotation marks, fewer are a name or an example of the speaker's own."""

_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_TAGGED = re.compile(r"<([A-Za-z][\w-]*)(?:\s[^<>\n]*)?>.*?</\1(?:\s[^<>\n]*)?>", re.DOTALL)
_QUOTED = re.compile(r"\"[^\"\n]{12,}\"|“[^”]{12,}”|«[^»]{12,}»|„[^“”]{12,}[“”]")
_FOREIGN_LINE = re.compile(
    r"\s*>"  # a quotation
    r"|\s*(?:\$|%|#!|>>>|\.\.\.|PS>)\s"  # a prompt
    r"|\s*[\[(]?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\s*\[?\d\d:\d\d:\d\d"  # a log
    r"|\s*(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|TRACE|CRITICAL)\b"
    r"|\s*(?:Traceback \(|File \"|at [\w.$<>]+\(|\S+(?:Error|Exception): )"  # a stack
    r"|\s*(?:@@ |\+\+\+ |--- |[-+](?! )\S|diff --git|index [0-9a-f]{7})"  # a difference
    r"|\s*\||\s*(?:From|Sent|Subject|To|Cc|Date): "  # a table, the head of a mail
    r"|(?:    |\t)\S"  # code
)
_REPORTED = re.compile(
    r"\b(?:read ?me|docs?|documentation|page|site|website|article|blog|post|e?mails?|messages?|letter|"
    r"ticket|"
    r"issue|thread|logs?|output|comments?|file|changelog|wiki|report|response|result|memory|notes?|it|"
    r"text|snippet|"
    r"instructions?)\s+(?:\w+\s+){0,3}?(?:says?|said|reads?|states?|stated|claims?|claimed|tells?|told|"
    r"asks?|"
    r"asked|recommends?|suggests?|instructs?|mentions?)\b"
    r"|\b(?:according to|quoting|quote|as (?:written|stated) in|copied from|pasted from|i (?:found|"
    r"read) (?:this|that))\b"
    r"|\b(?:says?|reads?|states?)\s*:",
    re.IGNORECASE,
)
"""A sentence that tells what some text says is about that text, and nobody's rule."""


def strip_pasted_text(text: str) -> str:
    """What the person says themselves, by paragraphs."""
    rest = _TAGGED.sub("\n", _FENCED.sub("\n", text[:_MAX_CHARS]))
    paragraphs = re.split(r"\n\s*\n", rest)
    own = (_own_lines(part) for part in paragraphs if not _is_paste(part))
    return "\n\n".join(part for part in own if part.strip())


def is_reported_speech(sentence: str) -> bool:
    """Whether it tells what a page, a mail or a file says."""
    return bool(_REPORTED.search(sentence))


def _is_paste(paragraph: str) -> bool:
    return len(paragraph) > PASTE_CHARS or paragraph.strip().count("\n") >= PASTE_LINES


def _own_lines(paragraph: str) -> str:
    kept: list[str] = []
    for line in paragraph.split("\n"):
        if kept and kept[-1].rstrip().endswith(":") and is_reported_speech(kept[-1]):
            # "The page says:" and what follows it.
            continue
        if not _FOREIGN_LINE.match(line):
            kept.append(line)
    return _QUOTED.sub(_unquoted, "\n".join(kept)).strip()


def _unquoted(match: re.Match[str]) -> str:
    return match.group() if len(match.group().split()) < QUOTED_WORDS else "…"
