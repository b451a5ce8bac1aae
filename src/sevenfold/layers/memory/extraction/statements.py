"""Extraction without a model: what a user states in so many words.

Requests to remember, standing rules, corrections, decisions, and where things are kept. Read from the user's
own words alone; what an assistant restates is used for the wording of what the user decided, never by itself.
It understands nothing: a rule that is hinted at is not found, and `docs/layers/extraction.md` says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sevenfold.core.text.stems import find_content_stems, split_sentences
from sevenfold.layers.memory.trust.taint import is_reported_speech

StatementKind: TypeAlias = Literal[
    "asked", "rule", "about you", "pointer", "correction", "decision", "amendment"
]

MAX_STATEMENT_CHARS = 400
"""A longer sentence is a story."""
MAX_ANSWER_WORDS = 8
"""Of a bare answer to a question: a longer one stands by itself."""
MIN_STATEMENT_STEMS = 2
"""Fewer words that mean something are no statement: "always!"."""

_LEAD = r"(?:^|[,;:—–-]\s*|\b(?:please|also|and|but|so|ok|okay|yes|no|right|then)[,:]?\s+)"
_ASKED = re.compile(
    rf"{_LEAD}(?:can you |could you )?(?:remember|keep in mind|bear in mind|make a note|take note|note|"
    rf"don't forget|"
    r"do not forget|for (?:the record|future reference)|save (?:this|that|it)(?: (?:to|"
    r"in) (?:your )?memory)?)"
    r"(?:\s+(?:this|that))?\s*[:,—–-]?\s+(?P<what>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_RULE = re.compile(
    rf"{_LEAD}(?:(?:we|you|i'd like you to|i want you to|make sure (?:to|you)|you should|you must|"
    rf"we should|we must)\s+)?"
    r"(?:always|never)\s+(?!mind\b)[a-z]"
    r"|\b(?:from now on|from here on|going forward|in (?:the )?future|as a rule|every time you|"
    r"whenever you|"
    r"each time you|under no circumstances|by default,? (?:use|run|write|we))\b"
    r"|\bthe (?:rule|convention|policy|standard) (?:here )?(?:is|stays|remains)\b"
    rf"|{_LEAD}(?:please )?(?:stop|quit) \w+ing\b"
    rf"|{_LEAD}(?:please )?use \S+(?: \S+)?,? (?:not|instead of|rather than|over) \S+"
    rf"|{_LEAD}(?:please )?(?:don't|do not) (?:ever|use|add|commit|push|touch|mock|write|put|run|create|"
    rf"change|edit)\b",
    re.IGNORECASE,
)
_STANDING = re.compile(
    r"^(?:(?:please|and|also|but|no|so|ok|okay|yes)[,:]? )*(?:always|never|don't|do not|stop|use)\b"
    r"|\b(?:from now on|from here on|going forward|in (?:the )?future|as a rule|you|"
    r"under no circumstances)\b",
    re.IGNORECASE,
)
"""A rule for all work, and not for what is being decided."""
_ABOUT_YOU = re.compile(
    r"\bI(?:'m| am) (?:an? |the |new to |responsible |in charge |on the |not (?:a|an|familiar|used)\b)"
    r"|\bI (?:work (?:on|as|in|for)|prefer|would rather|hate|can't stand|speak|live in|manage|maintain|"
    r"report to)\b"
    r"|\bI'd rather\b|\bI like (?:it when|my|to have|short|terse|small|when)\b"
    r"|\b[Mm]y (?:name|time ?zone|role|team|pronouns|job|background|preference) (?:is|are)\b|"
    r"\b[Cc]all me [A-Z]",
)
_SYSTEMS = (
    r"linear|jira|slack|notion|confluence|grafana|datadog|sentry|figma|trello|asana|pagerduty|looker|"
    r"tableau|"
    r"kibana|splunk|github|gitlab|bitbucket|google (?:doc|drive|sheet)s?|sharepoint|airtable|zendesk|teams"
)
_KEPT = (
    r"dashboards?|tracker|bugs?|issues?|tickets?|docs?|documentation|runbooks?|wiki|board|channel|logs|"
    r"metrics|"
    r"designs?|specs?|backlog|staging|alerts?|on-?call|incidents?|credentials|feature flags?|roadmap|schema"
)
_POINTER = re.compile(
    rf"\b(?:{_KEPT})\b[^.?!\n]{{0,60}}?\b(?:is|are|lives?|live|go|goes|tracked|kept|found|at|in|on|under|"
    rf"see)\b"
    rf"[^?!\n]{{0,60}}?(?:https?://\S+|\b(?:{_SYSTEMS})\b|#[a-z][\w-]+)"
    rf"|(?:https?://\S+|\b(?:{_SYSTEMS})\b)[^.?!\n]{{0,40}}\b(?:is|has|holds|tracks) (?:the|our|"
    rf"all)\b[^.?!\n]{{0,40}}"
    rf"\b(?:{_KEPT})\b",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"^(?:no|nope|wrong|not quite|almost|actually|hold on|wait|careful|that's (?:wrong|not|off)|"
    r"not (?:a|an|that|one|by|just|only))\b[\s,.!—–:-]",
    re.IGNORECASE,
)
_AMENDMENT = re.compile(
    r"\bamend(?:ment|ing|ed|s)?\b|\bsupersed|\b(?:updates?|changes?|revision|correction) to (?:the|our|"
    r"that) (?:\S+ ){0,3}"
    r"(?:policy|rule|decision|convention|agreement|plan|standard|limit|cap)\b"
    r"|\b(?:we|you) (?:settled|decided|agreed)(?: \S+){0,3} (?:before|earlier|last|a while|back|in)\b"
    r"|\bchange of plan\b|\bwe (?:changed our minds?|no longer)\b|\bscratch (?:that|what)\b|"
    r"\brevis(?:ing|ed) (?:the|our)\b"
    r"|\binstead of what we (?:decided|agreed|settled)\b",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    r"\b(?:amendments?|updates?|changes?|revision|correction) (?:to|of) (?:the|our|that) "
    r"(?P<what>(?:[\w'-]+ ){1,4}?)(?:policy|rule|decision|convention|agreement|plan|standard|limit|cap)\b",
    re.IGNORECASE,
)
_PERMISSION = re.compile(
    r"\b(?:shall|should|can|may|could) i\b|\b(?:want|like) me to\b|\bmind if\b|\bok(?:ay)? (?:if|to)\b|"
    r"\bready\b|\banything else\b",
    re.IGNORECASE,
)
"""Questions about what is done next. Their answers settle nothing beyond it."""
_DECISION = re.compile(
    r"\b(?:we|i|they|the team|ops|legal|finance|product|security)(?:'ve| have| has)?\s+(?:just |already |"
    r"all )?"
    r"(?:decided|agreed|settled|chose|chosen|signed off|standardi[sz]ed|ruled|want (?:it|this|that) to|"
    r"insist)\b"
    r"|\b(?:we're|we are|i'm) going with\b|\blet's (?:go with|use|stick (?:with|to)|keep|do it|settle on|"
    r"make it)\b"
    r"|\b(?:that's|that is) (?:the|our) (?:rule|policy|decision|split|convention|agreement)\b"
    r"|\b(?:standing agreement|sign(?:ed)? off|non-negotiable|off the table|source of truth)\b",
    re.IGNORECASE,
)
_STRONG = re.compile(
    r"\b(?:must(?:n't| not)?|never|(?<!are )(?<!is )(?<!that )always(?! (?:good|help))|only|"
    r"(?<!that's )(?<!yeah, )"
    r"exactly(?! (?:as|that|what|the same thing))|at (?:most|least)|has to|have to|unconditional(?:ly)?|"
    r"no matter|regardless|required|not allowed|forbidden|source of truth|across the board|"
    r"whatever the|should (?:not|stay)|shouldn't)\b",
    re.IGNORECASE,
)
"""Words by which an answer settles something."""
_WEAK = re.compile(
    r"\b(?:cap (?:it|the)|stays?|wins?|counts? as|means?|instead|rather than|reject|drop|keep|ignore|"
    r"round(?:ed)?|"
    r"total|per|one|both|first|same|leave|exception|nobody)\b",
    re.IGNORECASE,
)
"""Words that do so beside such an answer."""
_MUSING = re.compile(
    r"\b(?:maybe|perhaps|probably|presumably|seems?|seemed|wonder(?:ing)?|guess|i think|i mean|i see|"
    r"i remember|i noticed|"
    r"i saw|might|could|feels?|looks? like|consider|what if|makes? (?:\w+ )?sense|speaking of|given how|"
    r"suppose|curious|"
    r"thinking|sounds like|basically|essentially|kind of|sort of|almost like|i was|good point|"
    r"interesting|hopefully|"
    r"must have|should be (?:fine|available|enough)|worth|would be|it's like|so it's|so,? if|imagine|"
    r"right\?)\b"
    r"|`[^`]+`[^`]*`[^`]+`",
    re.IGNORECASE,
)
"""Thinking aloud, or telling what code does (two names in code or more): nothing is settled by it."""

_QUESTION = re.compile(
    r"\?\s*$|^(?:what|why|how|when|where|which|who|is|are|do|does|did|can|could|would|should|"
    r"will)\b(?!.*\bor else\b)",
    re.IGNORECASE,
)
_FAULT = re.compile(
    r"\b(?:it|which|that|this|they|test|build|page|server|app|function|code) (?:always|never)\b",
    re.IGNORECASE,
)
"""A report of what goes wrong, not a rule."""
_YES = re.compile(
    r"^(?:yes|yep|yeah|exactly|right|correct|agreed|confirmed|perfect|that's (?:it|right|the)|"
    r"sounds good|all unchanged|do it)\b|, yes\b",
    re.IGNORECASE,
)
_RECAP = re.compile(
    r"^(?:settled|final|agreed|amend(?:ed|ing)|so:|to (?:sum|recap)|recap|summary|understood|got it|"
    r"in short|confirmed|"
    r"decision|locked|so the rule|the rule)\b",
    re.IGNORECASE,
)


_KINDS: dict[StatementKind, re.Pattern[str]] = {
    "amendment": _AMENDMENT,
    "pointer": _POINTER,
    "rule": _RULE,
    "decision": _DECISION,
    "about you": _ABOUT_YOU,
}
"""In this order: the first that fits."""


@dataclass(frozen=True, slots=True)
class Statement:
    kind: StatementKind
    text: str


def find_statements(own: str, *, is_answer: bool = False) -> tuple[Statement, ...]:
    """What a user's own words state. `is_answer`: an assistant had proposed or asked something."""
    found: list[Statement] = []
    sentences = split_sentences(own)
    is_settling = is_answer and "?" not in own and any(_settles(sentence) for sentence in sentences)
    for sentence in sentences:
        kind = _kind_of(sentence, is_settling=is_settling)
        if kind is not None and len(find_content_stems(sentence)) >= MIN_STATEMENT_STEMS:
            found.append(Statement(kind, _cleaned(sentence, kind)))
    return tuple(found)


def find_recap(answer: str) -> str:
    """Where an assistant says in full what was settled: its words; empty where it does not."""
    for paragraph in re.split(r"\n\s*\n", answer):
        line = " ".join(paragraph.split())
        if _RECAP.match(line.lstrip("*_ ")) and len(find_content_stems(line)) >= 6 and "?" not in line[-2:]:
            return line
    return ""


def find_answer(asked: str, own: str) -> str:
    """A few words that answer an assistant's question, with the question; empty where they are none."""
    question = next(reversed(split_sentences(asked)), "")
    is_short = 0 < len(own.split()) <= MAX_ANSWER_WORDS and "?" not in own and not _MUSING.search(own)
    if not is_short or not question.endswith("?") or len(question) > MAX_STATEMENT_CHARS:
        return ""
    return "" if _PERMISSION.search(question) else f"{question} — {' '.join(own.split())}"


def find_amended_subject(own: str) -> str:
    """Of what an amendment amends the policy or rule: "retry"; empty where it does not say."""
    found = _SUBJECT.search(own)
    return found["what"].strip() if found else ""


def is_agreement(own: str) -> bool:
    """Whether the user says yes to what was proposed."""
    return bool(_YES.match(own.strip()))


def is_response(own: str) -> bool:
    """Whether the user corrects or agrees to what was proposed."""
    return bool(_CORRECTION.match(own.strip()) or _YES.match(own.strip()))


def _settles(sentence: str) -> bool:
    """Whether a sentence of an answer decides what was asked."""
    if _MUSING.search(sentence):
        return False
    return bool(_CORRECTION.match(sentence) or _YES.match(sentence) or _STRONG.search(sentence))


def _kind_of(sentence: str, *, is_settling: bool) -> StatementKind | None:
    if len(sentence) > MAX_STATEMENT_CHARS or is_reported_speech(sentence):
        return None
    asked = _ASKED.search(sentence)
    if asked and not sentence.rstrip().endswith("?"):
        return "asked"
    if _QUESTION.search(sentence) or _FAULT.search(sentence):
        return None
    kind: StatementKind | None = next((kind for kind in _KINDS if _KINDS[kind].search(sentence)), None)
    if kind in ("decision", "about you", "amendment") and _MUSING.search(sentence):
        return None
    if kind == "rule" and is_settling and not _STANDING.search(sentence):
        # Of the matter at hand: "sort by name, never by date".
        return "correction" if _CORRECTION.match(sentence) else "decision"
    return kind or _answered(sentence, is_settling)


def _answered(sentence: str, is_settling: bool) -> StatementKind | None:
    if not is_settling or _MUSING.search(sentence):
        return None
    if _CORRECTION.match(sentence):
        return "correction"
    return "decision" if _STRONG.search(sentence) or _WEAK.search(sentence) else None


def _cleaned(sentence: str, kind: StatementKind) -> str:
    text = " ".join(sentence.split())
    if kind == "asked" and (asked := _ASKED.search(text)):
        text = asked["what"]
    text = text.strip(" ,;—–-")
    return text[:1].upper() + text[1:]
