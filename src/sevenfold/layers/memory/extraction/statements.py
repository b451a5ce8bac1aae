"""Extraction without a model: what a user states in so many words, in twelve languages.

Each sentence is looked at by itself. It is a statement when words of its language say that it stands ("from
now on", "we use", "I prefer") and nothing says that it does not: a question, a case that is only supposed,
somebody else's words, a text to be written, or a limit ("for this run", "until I'm back"). A limit wins over
everything. What an assistant restates is used for the wording of what the user decided, never by itself. In
doubt nothing is found, and `docs/layers/extraction.md` says what is missed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from sevenfold.core.text.stems import UNSPACED_CHARS, find_content_stems, normalize_text, split_sentences
from sevenfold.layers.memory.extraction.cue_patterns import (
    ADDRESS,
    INTRODUCED,
    JOKED,
    LOGGED,
    PLACE,
    RECURRING,
    RELATED,
    TEXT_TO_WRITE,
    UNIVERSAL,
    WANTED_TEXT,
    Cues,
    choose_language,
    read_cues,
)
from sevenfold.layers.memory.trust.frames import is_reported_speech

StatementKind: TypeAlias = Literal[
    "asked", "rule", "about you", "fact", "pointer", "correction", "decision", "amendment"
]

MAX_STATEMENT_CHARS = 400
"""A longer sentence is a story."""
MAX_ANSWER_WORDS = 8
"""Of a bare answer to a question: a longer one stands by itself."""
MIN_DECISION_WEIGHT = 3
"""Sentences that settle something, or one that says that it is decided. One alone ("only the unit tests") is
mostly about the task."""
MIN_STATEMENT_STEMS = 2
"""Fewer words that mean something are no statement; of a rule one is enough: "always use tabs"."""
MIN_UNSPACED_CHARS = 6
"""The same for scripts that put few or no spaces between words."""
MAX_HEAD_WORDS = 5
"""Before "always" in an instruction: with more, it is about something that is told."""

MIN_TOLD_WORDS = 3
"""Of a clause that says something: fewer are "no", "good work" or "on Fridays"."""


# Sentences: without what somebody else wrote.

_URL = re.compile(r"https?://\S+")
_QUESTION_MARK = re.compile(r"¿|[?？][\s\"')»”]*$")
_RELAY = re.compile(
    r"^\s*(?:\[?\d{1,2}:\d\d\b|\S[^\n]{0,40}\s\d{1,2}:\d\d(?:\s*[ap]m)?\s*$|-{3,}|.*forwarded message"
    r"|#{1,6}\s)",
    re.IGNORECASE,
)
"""A line of a chat, of a forwarded mail or of a page. All that follows it is somebody else's too."""
_ANNOUNCED = re.compile(r"[:：]\s*$")
_QUOTED = re.compile(
    r"\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|„[^“”\n]*[“”]|「[^」\n]*」|『[^』\n]*』|`[^`\n]*`"
    r"|(?<!\w)'[^'\n]*\s[^'\n]*'(?!\w)"
)
_HIDDEN = {ord(mark): 0xE000 + at for at, mark in enumerate(".!?;")}
"""Where a quote ends a sentence, the one around it goes on."""
_SHOWN = {shown: hidden for hidden, shown in _HIDDEN.items()}
_CODE = re.compile(
    r"[{}]|;\s*$|=>|[=!]==?\s|^\s*(?://|/\*|<!--|<\w|@@|def \w|class \w|import \w|SELECT\b|\$ )"
    r"|^\s*\w+ = |--\s*$|(?:\.{3}|…)\s*$"
    r"|\b(?i:line|zeile|línea|ligne|linha|riga|regel|lini\w|строк\w+) \d+|第 ?\d+ ?行|\d+번째 줄"
)
_IS_UNSPACED = re.compile(UNSPACED_CHARS)
_SENTENCE_END = re.compile(
    r"(?<=[.!?])[\"')\]]*\s+|\n+|(?<=\w);[ \t]+(?=\w)|(?<=;)\s+"
    rf"|(?<=[。！？])|(?<=[?!])(?={UNSPACED_CHARS})"  # as it was typed
)
_BULLET = re.compile(r"^\s*(?:[-*•+]|\d+[.)])\s+|^\s*#+\s+|^\s*>+\s?")
_CLAUSE_END = re.compile(r"[,;:—–、]\s*|\s-\s+")
_PREDICATE = re.compile(r"\b(?:is|are|do|does|did|has|have|was|were)(?:n't)?\b", re.IGNORECASE)
_REQUIREMENT = re.compile(r"the (?:\w+ ){1,3}(?:should|must|has to|have to|needs to)\b", re.IGNORECASE)
_DEMAND = re.compile(
    r"(?:no\W+)?(?!you\b|we\b|i\b)(?:\w+ ){1,4}(?:should|must|has to|have to|needs to)\b", re.IGNORECASE
)
"""What a thing has to be, of which "and never below 9" goes on."""
_SYSTEMS = (
    r"linear|jira|slack|notion|confluence|grafana|datadog|sentry|figma|trello|asana|pagerduty|looker|"
    r"tableau|launchdarkly|posthog|honeycomb|opsgenie|miro|clickup|youtrack|mattermost|discord|"
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


def _own_sentences(own: str) -> Iterator[str]:
    """The sentences that a user says in their own name. A word that stands alone ("Always.") belongs to the
    sentence before it."""
    lines: list[str] = []
    is_logged = False
    for line in own.split("\n"):
        if _RELAY.match(line):
            break
        is_logged = bool(LOGGED.match(line)) or (is_logged and bool(line.strip()))
        if is_logged:
            continue
        lines.append(line)
        if _ANNOUNCED.search(line) and not _is_introduction(line):
            break
    last = ""
    whole = _QUOTED.sub(lambda quote: quote[0].translate(_HIDDEN), "\n".join(lines))
    for part in _SENTENCE_END.split(whole):
        sentence = _BULLET.sub("", part.translate(_SHOWN)).strip(" *_\t\r")
        is_bare = not any(map(str.isalnum, sentence))
        if is_bare and not (last and JOKED.search(sentence)):
            continue
        if last and (is_bare or _is_marker(sentence)):
            last = f"{last} {sentence}"
            continue
        if last:
            yield last
        last = sentence
    if last:
        yield last


def _is_introduction(line: str) -> bool:
    """Whether a line that ends with a colon begins a list of the user's own: "Remember these rules:"."""
    cues = read_cues(choose_language(line))
    return (
        any(cue.search(line) is not None for cue in (cues.remember, cues.onward)) or "rule" in line.casefold()
    )


def _is_marker(sentence: str) -> bool:
    word = sentence.strip(" .!…").casefold()
    return read_cues(choose_language(sentence)).always.fullmatch(word) is not None


# Kinds of sentences.


@dataclass(frozen=True, slots=True)
class Statement:
    kind: StatementKind
    text: str


def find_statements(own: str, *, is_answer: bool = False) -> tuple[Statement, ...]:
    """What a user's own words state. `is_answer`: an assistant had proposed or asked something, and what
    settles it counts too."""
    likely = choose_language(own)
    is_settling = (
        is_answer and "?" not in own and any(_settles(sentence) for sentence in split_sentences(own))
    )
    found: list[Statement] = []
    for sentence in _own_sentences(own):
        cues = read_cues(choose_language(sentence, likely))
        if found and _is_limit_alone(sentence, cues):
            found.pop()
            continue
        kind = _kind_of(sentence, cues) or _answered(sentence, is_settling)
        if kind is not None and not _is_thin(sentence, kind):
            found.append(Statement(kind, _cleaned(sentence, kind, cues)))
    return tuple(found)


def _is_limit_alone(sentence: str, cues: Cues) -> bool:
    """ "Just for this run.": it limits what was said before it."""
    is_whole = _QUESTION_MARK.search(sentence) or _PREDICATE.search(sentence)
    is_short = len(find_content_stems(sentence)) <= MIN_STATEMENT_STEMS
    return not is_whole and cues.limited.search(sentence) is not None and is_short


def _is_thin(sentence: str, kind: StatementKind) -> bool:
    needed = 1 if kind in ("rule", "asked") else MIN_STATEMENT_STEMS
    least = MIN_UNSPACED_CHARS - 2 if kind == "about you" else MIN_UNSPACED_CHARS
    return len(_IS_UNSPACED.findall(sentence)) < least and len(find_content_stems(sentence)) < needed


def _kind_of(sentence: str, cues: Cues) -> StatementKind | None:
    unmeant = (_CODE, _QUESTION_MARK, JOKED, TEXT_TO_WRITE)
    if len(sentence) > MAX_STATEMENT_CHARS or any(sign.search(sentence) for sign in unmeant):
        return None
    bare = _QUOTED.sub("…", normalize_text(sentence))
    if _AMENDMENT.search(bare) and not cues.open.search(bare):
        return "amendment"
    if cues.limited.search(bare) or cues.open.search(bare):
        return None
    marked = cues.joins.sub(",", _CLAUSE_END.sub(",", bare))
    parts = [part.strip(" .!…*_()") for part in marked.split(",")]
    clauses = tuple(clause for part in parts if (clause := _without_lead(part, cues)))
    if any(_begins(cues.remember, part) for part in (*parts[:2], *clauses[:2])):
        return "asked"
    if is_reported_speech(bare) or cues.unsaid.search(bare) or _is_made(bare, cues):
        return None
    return _stated(bare, clauses, cues)


def _is_made(bare: str, cues: Cues) -> bool:
    """Whether something is to be written that may hold the words of a rule."""
    made = cues.made.search(bare)
    if made is None:
        return False
    if _IS_UNSPACED.search(bare):
        standing = (cue.search(bare) for cue in (cues.onward, cues.always))
        return not any(found is not None and found.start() < made.start() for found in standing)
    begun, rest = bare[: made.start()].rstrip(), bare[made.end() :].lstrip()
    if cues.onward.search(begun) or any(found.end() == len(begun) for found in cues.always.finditer(begun)):
        return False
    # "Write tests always first": a word may stand between.
    word, _, after = rest.partition(" ")
    near = (rest, after) if word.isalnum() else (rest,)
    return not any(cue.match(part) for cue in (cues.onward, cues.always) for part in near)


def _stated(bare: str, clauses: tuple[str, ...], cues: Cues) -> StatementKind | None:
    if _POINTER.search(bare) or (cues.found.search(bare) and _is_located(bare)):
        return "pointer"
    is_rule = any(_is_rule(clause, cues, clauses[:at]) for at, clause in enumerate(clauses))
    is_rule = is_rule and not _DEMAND.match(bare) and not _goes_on(bare, clauses, cues)
    if is_rule or _is_onward(bare, clauses, cues):
        return "rule"
    if any(_begins(cues.prefer, clause) for clause in clauses) or WANTED_TEXT.search(bare):
        return "about you"
    if cues.status.search(bare) or any(_begins(cues.task, clause) for clause in clauses):
        return None
    if cues.decided.search(bare) or _DECISION.search(bare):
        return "decision"
    if INTRODUCED.search(bare) or any(cues.person.search(part) for part in (bare, *clauses)):
        return "about you"
    is_correction = cues.wrong.match(bare) and cues.contrast.search(bare, 3)
    facts = (at for at, clause in enumerate(clauses) if _begins(cues.fact, clause))
    is_fact = any(cues.wrong.match(bare) or not _is_reason(clauses[:at], cues) for at in facts) or _is_here(
        bare, cues
    )
    return "fact" if is_correction or is_fact else None


def _is_here(bare: str, cues: Cues) -> bool:
    """Whether it begins with how something is in this project, before which only a greeting may stand."""
    found = cues.here.search(bare)
    return found is not None and bare[: found.start()].count(" ") < MAX_HEAD_WORDS


def _is_located(bare: str) -> bool:
    """Whether it gives an address, of something that has one: "the staging DB is on pg-2"."""
    return bool(_URL.search(bare) or (PLACE.search(bare) and ADDRESS.search(bare)))


def _is_onward(bare: str, clauses: tuple[str, ...], cues: Cues) -> bool:
    """Whether it says "from now on" of the work, and not of what is built ("the page should from now on")."""
    if _REQUIREMENT.match(bare):
        return False
    said = [found for part in (bare, *clauses) if (found := cues.onward.search(part))]
    is_told = any(RELATED.search(found.string[: found.start()]) for found in said)
    # "From now on it returns a tuple, adapt the callers": a change, and what has to be done for it.
    is_told = is_told or any(
        cues.onward.search(part)
        and _is_reason([cues.onward.sub("", part)], cues)
        and _begins(cues.task, then)
        for part, then in pairwise(clauses)
    )
    is_recurring = any(sign.search(bare) for sign in (UNIVERSAL, RECURRING))
    return is_recurring or (bool(said) and not is_told)


def _is_rule(clause: str, cues: Cues, before: Sequence[str]) -> bool:
    """Whether "always" stands at the head of an instruction, or in what "we" do. What is told `before` it
    gives it as a reason: "the lock can go, we always write from one thread"."""
    found = cues.always.search(clause)
    if found is None:
        return False
    if _IS_UNSPACED.search(clause):
        return cues.state.search(clause) is None
    head, tail = clause[: found.start()].strip(), clause[found.end() :].strip()
    words = head.split()
    is_ours = bool(words) and bool(cues.we.match(head) or cues.we.fullmatch(words[-1]))
    if (words or cues.we.match(tail)) and _is_reason(before, cues):
        return False
    is_said_of_us = cues.we.fullmatch(head) or (cues.when.match(head) and cues.we.match(tail))
    is_others = cues.other.search(head) and not is_said_of_us
    if is_others or cues.state.match(tail) or cues.state.search(head):
        return False
    if cues.same.match(tail) and (is_ours or not words):
        return False
    is_short = len(words) < MAX_HEAD_WORDS
    if words and not is_ours and cues.telling.search(tail):
        return False
    return (is_ours or is_short) and len(words) + len(tail.split()) > 1


def _is_reason(before: Sequence[str], cues: Cues) -> bool:
    """Whether what stands before a clause says something of its own, and not when the clause applies."""
    return any(len(told.split()) >= MIN_TOLD_WORDS and not cues.when.match(told) for told in before)


def _goes_on(bare: str, clauses: Sequence[str], cues: Cues) -> bool:
    """Whether "and never" still tells of the subject before: "the toast has to stay and never close"."""
    is_thing = cues.other.match(clauses[0]) or cues.state.search(clauses[0]) if clauses else None
    joined = (bare[join.end() :].lstrip() for join in cues.joins.finditer(bare))
    return is_thing is not None and any(cues.always.match(rest) for rest in joined)


def _begins(cue: re.Pattern[str], clause: str) -> bool:
    """Whether a clause begins with it; where verbs come last, whether it has it."""
    return bool(cue.search(clause) if _IS_UNSPACED.search(clause) else cue.match(clause))


def _without_lead(clause: str, cues: Cues) -> str:
    while (lead := cues.lead.match(clause)) and lead.end():
        clause = clause[lead.end() :].lstrip(" ,:!.-")
    return clause


def _cleaned(sentence: str, kind: StatementKind, cues: Cues) -> str:
    text = " ".join(sentence.split())
    if kind == "asked" and (asked := cues.remember.search(text)) and asked.end() < len(text):
        rest = re.sub(
            r"^(?:\s|[:,—–-]|(?:this|that|dass|que|qu'|che|dat|że|что)\b)+", "", text[asked.end() :]
        )
        text = text if _is_thin(rest, kind) else rest
    text = text.strip(" ,;—–-")
    return text[:1].upper() + text[1:]


# Answers: what a user decides of what an assistant proposed or asked. In English alone.

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

_YES = re.compile(
    r"^(?:yes|yep|yeah|exactly|right|correct|agreed|confirmed|perfect|that's (?:it|right|the)|"
    r"sounds good|all unchanged|do it)\b|, yes\b",
    re.IGNORECASE,
)


def find_answer(asked: str, own: str) -> str:
    """A few words that answer an assistant's question on what is always so, with the question; empty where
    they are none."""
    question = next(reversed(split_sentences(asked)), "")
    is_short = 0 < len(own.split()) <= MAX_ANSWER_WORDS and "?" not in own and not _MUSING.search(own)
    if not is_short or not question.endswith("?") or len(question) > MAX_STATEMENT_CHARS:
        return ""
    cues = read_cues(choose_language(own))
    is_standing = any(cue.search(f"{question} {own}") for cue in (cues.always, cues.onward))
    if not is_standing or cues.limited.search(own) or _PERMISSION.search(question):
        return ""
    return f"{question} — {' '.join(own.split())}"


def weigh_decision(text: str) -> int:
    """How sure it is that a sentence decides something beyond the task: `MIN_DECISION_WEIGHT` is enough."""
    cues = read_cues(choose_language(text))
    is_explicit = any(cue.search(text) for cue in (_AMENDMENT, _DECISION, cues.decided))
    return MIN_DECISION_WEIGHT if is_explicit else 1


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


def _answered(sentence: str, is_settling: bool) -> StatementKind | None:
    if not is_settling or _MUSING.search(sentence):
        return None
    if _CORRECTION.match(sentence):
        return "correction"
    return "decision" if _STRONG.search(sentence) or _WEAK.search(sentence) else None
