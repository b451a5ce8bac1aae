"""Makes relative dates absolute: "yesterday" in a memory means another day each time it is read.

Prose only: code, tables, quoted words and addresses stay as they are, and so does a sentence that sets a
habit ("always use today's date"), where no one day is meant. "Today" often means "nowadays", and becomes
a date only where a sentence tells of an event. With `events_only` that holds for every date ("we moved
yesterday", "Ann leaves tomorrow"): what is so in general ("the report covers yesterday"), is asked for or
supposed stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
_COUNTS = {
    **{"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7},
    **{"eight": 8, "nine": 9, "ten": 10, "a couple of": 2, "couple of": 2},
}
_SHIFTS = {
    "the day before yesterday": -2,
    **dict.fromkeys(("yesterday", "last night"), -1),
    **dict.fromkeys(("today", "tonight", "this morning", "this afternoon", "this evening"), 0),
    "tomorrow": 1,
    "the day after tomorrow": 2,
}
_NEAR = {"last": -1, "this": 0, "next": 1}
_MOST = 400
"""Of whatever unit: who writes "9999 years ago" means no date."""

_count = "|".join(sorted((*_COUNTS, r"\d{1,3}"), key=len, reverse=True))
_RELATIVE = re.compile(
    r"(?<![\w./-])(?:(?P<lead>since|by|until|till|before|after|from|on|as\ of|of|up\ to|to|for|than|during"
    r"|over|around|within|in|between)\ )?"
    rf"(?:(?P<shift>{'|'.join(sorted(_SHIFTS, key=len, reverse=True))})(?!['’]s|-)"
    rf"|(?P<count>{_count})\ (?P<unit>day|week|month|year)s?\ ago"
    rf"|(?<!the\ )(?<!each\ )(?<!every\ )(?P<near>last|this|next)\ "
    rf"(?P<span>week|month|year|{'|'.join(_DAYS)})(?!['’]s|-|\ of\b|\ \(said))\b(?![./_-]\w)",
    re.IGNORECASE,
)
_HINTS = ("yesterday", "today", "tonight", "tomorrow", "ago", "last ", "this ", "next ")
"""One of them is in each: most memories hold none, and need no closer look."""
_GENERAL = re.compile(
    r"\b(?:always|never|every|each|whenever|usually|often|sometimes|daily|nightly|weekly|monthly|if|when|"
    r"unless|while|once|suppose|imagine|pretend|given (?:that|the|an?)|whatever|story|tale|film|joke|"
    r"exercise|scenario|tutorial|template|seed|demo|dummy|fake|stub|e\.g|i\.e|examples?|such as|like|"
    r"label|column|field|option|preset|filter|button|placeholder|range|query|queries|reports?|dashboard|"
    r"fixture|mocks?|format|parses?|(?<!\bthe )parser|string|value|default|cron|scheduler|would|could|might|"
    r"may|should|must|cannot|can|let['’]?s)\b|\?",
    re.IGNORECASE,
)
"""In a sentence that speaks of no one day, or of a date as a thing."""
_UNSURE = re.compile(
    r"\b(?:maybe|perhaps|probably|presumably|apparently|reportedly|allegedly|supposedly|seems?|looks like|"
    r"according to|says?|thinks?|believes?|claims?)\b",
    re.IGNORECASE,
)
"""Somebody else's word, of whose day nothing is known, or a guess."""
_HABIT = re.compile(r"\b(?:always|never|every|each|whenever|usually|often)\b", re.IGNORECASE)
_ASKED = re.compile(
    r"\s*(?:[-*+]\s+|\d+[.)]\s+)?(?:\*\*[^*]*\*\*:?\s*)?(?:please |do not |don['’]t |just |then )?"
    r"(?:use|run|delete|keep|check|show|list|compare|include|exclude|take|get|fetch|pick|skip|ignore|remove|drop|"
    r"add|restore|revert|see|look|read|open|copy|move|make|set|put|ask|tell|remember|prefer|avoid|try|retry|"
    r"rerun|do|find|print|log|write|send|start|stop|wait|merge|rebase|review|clean|archive|export|import|load|"
    r"sync|update|bump|test|verify|ensure|assume|treat|count|group|sort|select|return|call|expect|consider|"
    r"replace|rename|say|mark|tag|push|pull|close|reopen|follow|query|search|watch|rotate|deploy|release|plan|"
    r"schedule|note|go|come|give|save|store|create|build|install|upgrade|fix)\b",
    re.IGNORECASE,
)
"""How a sentence begins that asks for something."""
_BOUND = re.compile(r"[,;:()–—]|\b(?:and|but|because|so)\b", re.IGNORECASE)
_SUBORDINATE = re.compile(
    r"\b(?:that|which|what|whatever|who|whoever|whom|whose|where|how|why|than|as)\b", re.IGNORECASE
)
_HAPPENED = re.compile(
    r"\b(?:decided|agreed|moved|migrated|switched|released|shipped|deployed|merged|renamed|removed|deleted|"
    r"added|fixed|broke|broken|failed|crashed|started|began|begun|ended|finished|completed|launched|left|"
    r"joined|met|talked|said|told|asked|approved|rejected|reverted|upgraded|downgraded|updated|changed|"
    r"introduced|dropped|created|opened|closed|signed|bought|paid|published|announced|discovered|found|"
    r"reported|confirmed|tested|rotated|expired|tagged|froze|frozen|split|rewrote|rewritten|wrote|written|built|"
    r"disabled|enabled|installed|shut|learned|noticed|saw|happened|occurred|went|came|became|got|lost|won|hired|"
    r"planned|scheduled|postponed|cancelled|canceled|bumped|backported|landed|pushed|sent|received|replaced|"
    r"refactored|archived|restored|recovered|retired|deprecated|promoted|handed|gave|took|held|ran|did|rolled)\b",
    re.IGNORECASE,
)
_SHOWN = re.compile(
    r"\b(?:posts?|says?|reads?|prints?|shows?|writes?|sends?|logs?|displays?|announces?|answers?|returns?|"
    r"(?:starts?|begins?|ends?) with|message|text|subject|title|example|sample)\b[^:]*:\s",
    re.IGNORECASE,
)
"""Before a text that something shows each time: "the bot posts: deployed yesterday"."""
_WAS = re.compile(r"\b(?:was|were|had)\b", re.IGNORECASE)
_PREDICATE = re.compile(r"\s+(?:(?i:was|were|is|has|had|will be)|[a-z]+s)\b")
_WILL_HAPPEN = re.compile(
    r"\b(?:will|going to|due|deadline|starts?|begins?|ends?|expires?|launches?|leaves?|arrives?|closes?|"
    r"opens?|ships?|goes live|moves?|away|on leave|out of office|planned|scheduled|postponed)\b",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"\s*(?:[-*+]\s+|\d+[.)]\s+)?(?:\*\*(?:why|how to apply):?\*\*:?\s+)?"
    r"(?:(?:(?i:we|i|he|she|they|it)|(?i:the|our|their|his|her|its|an?|both|all)(?:\s+[\w'’`/.-]+){1,4}?"
    r"|[A-Z0-9`][\w'’`/.-]*(?:\s+(?:and\s+)?[\w'’`/.-]+){0,3}?)\s+)?"
    r"(?:(?:has|have|is|are|been|also|then|just|finally|already|not|never|again|\w+ly)\s+)*"
    rf"(?i:{_HAPPENED.pattern}|{_WILL_HAPPEN.pattern}|was|were|had)\b"
)
"""How a sentence opens that reports: with who or what it was, and its verb. A speaker, a label, a command or
a clause that says which one is meant fits in nowhere."""
_FOLLOWS = re.compile(
    r"\s*(?:$|[.,;:!)(–—]|(?:and|but|because|so|to|from|after|before|when|while|where|on|in|into|onto|with"
    r"|without|by|at|for|as|since|due|instead|of|via|over|under|about|between|until|through|during|against|the|an?|our|we"
    r"|i|he|she|they|it|was the|[A-Z]\S*)\b)"
)
"""Behind a date: no verb, of which the part before would be the subject."""
_NEUTRAL = re.compile(
    r"[*_]*(?:(?:our|the|what|who|project|team|recent|main|key|more|other|latest|past|next|open|known)\s)*(?:notes?|"
    r"decisions?|history|changes?|news|status|background|context|why|reasons?|events?|facts?|infrastructure|timeline|"
    r"milestones?|plans?|updates?|people|team|progress|happened|changed|incidents?|outages?|moves?|migrations?|"
    r"releases?|deployments?|dates?|deadlines?|work|stack|setup|architecture|deploys?|how to apply)\b",
    re.IGNORECASE,
)
"""A label below which a project tells of itself. Below any other may stand what is only shown."""
_OTHER_LEADS = frozenset(["from", "up to", "to", "for", "than", "over", "around", "within", "in", "between"])
"""Behind one of them a date says which things are meant, or how long something was so."""
_ITEM_MARKS = ("- ", "* ", "+ ")
_RETOLD = re.compile(
    r"\b(?:said|told|asked|claimed|titled|called|named|guess|heard|thought)\b", re.IGNORECASE
)
_PRESENT = re.compile(
    r"\b(?:is|are|am|has|have|does|any|(?<!\bthe )old|older|newer|nowadays)\b|['’](?:s|re|ve)\b"
    r"|(?<!\bto )\b(?:do|needs?|uses?|runs?|shows?|returns?|contains?|keeps?|works?|wants?|covers?)\b"
    r"|\bdeletes?\b",
    re.IGNORECASE,
)
_AGO = frozenset(["yesterday", "last night", "the day before yesterday"])
_AHEAD = frozenset(["tomorrow", "the day after tomorrow"])
_KEPT = re.compile(
    r"(?P<fence>^ {0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}\2[^\n]*$|\Z))"
    r"|``.*?``|`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|„[^“”\n]*[“”]|‘[^’\n]*’|(?<!\w)'[^'\n]*'(?!\w)"
    r"|^[^\S\n]*(?:\||#)[^\n]*|^[^\n]*\S \| \S[^\n]*|\bhttps?://\S+|^ {0,3}>[^\n]*"
    r"|<!--.*?-->|^[^\n]*</?[a-z]+[^>\n]*>[^\n]*|(?:\A|(?<=:\n)|(?<=\n\n)) {4}[^\n]*",
    re.DOTALL | re.MULTILINE,
)
_SENTENCE = re.compile(
    r"[^.!?\n]*(?:(?:[.!?](?!\s|$)|(?i:(?<=e\.g)|(?<=i\.e)|(?<=\bvs)|(?<=\bcf))\.)[^.!?\n]*)*[.!?]?|\n"
)
_SPECIMEN = re.compile(
    r"\b(?:samples?|examples?|templates?|placeholders?|boilerplate|wordings?|phras(?:e|es|ing)|"
    r"quot(?:e|es|ed|ation)|transcripts?|fixtures?|mocks?|canned|greetings?|repl(?:y|ies)|answers?|"
    r"messages?|texts?|headlines?|newsletters?|announcements?|scripts?|stor(?:y|ies)|exercises?|expected|"
    r"outputs?|prompts?|snippets?|drafts?|posts?|captions?|tooltips?|translations?|"
    r"(?:test|seed|demo) data|log lines?|said|wrote|says|writes)\b",
    re.IGNORECASE,
)
"""In a title: what stands below it is shown, and was not written on the day of the memory."""


def resolve_relative_dates(text: str, day: date, *, events_only: bool = False) -> str:
    """The text as if it had been written with dates, on that day. What is absolute stays as it is."""
    low = text.lower()
    if not any(hint in low for hint in _HINTS) or not _RELATIVE.search(text):
        return text
    found: list[str] = []
    at = 0
    for kept in _KEPT.finditer(text):
        found += (_dated(text[at : kept.start()], day, events_only=events_only), kept[0])
        at = kept.end()
    made = "".join((*found, _dated(text[at:], day, events_only=events_only)))
    return _without_specimens(text, made) if events_only else made


def _without_specimens(text: str, made: str) -> str:
    """The text with dates, but for the lines below a title that announces an example or a message. No date
    adds a line."""
    kept: list[str] = []
    is_shown = False
    for line, dated in zip(text.splitlines(keepends=True), made.splitlines(keepends=True), strict=True):
        bare = line.strip()
        kept.append(line if is_shown else dated)
        is_title = bare.startswith("#") or (bare[:2] not in _ITEM_MARKS and bare[-1:] not in "*_.!?")
        if bare and is_title:
            is_new = bare[0] == "#" or bare[-1] == ":"
            is_foreign = bare[-1] == ":" and bare[0] != "#" and not _NEUTRAL.match(bare)
            is_shown = is_foreign or bool(_SPECIMEN.search(bare)) or (is_shown and not is_new)
    return "".join(kept)


def _dated(prose: str, day: date, *, events_only: bool) -> str:
    return _SENTENCE.sub(lambda sentence: _spelled(sentence[0], day, events_only=events_only), prose)


def _spelled(sentence: str, day: date, *, events_only: bool) -> str:
    if _HABIT.search(sentence):
        return sentence
    is_plain = not any(sign.search(sentence) for sign in (_GENERAL, _UNSURE)) and not _ASKED.match(sentence)

    def replace_date(match: re.Match[str]) -> str:
        is_open = not events_only and (match["shift"] or "").lower() != "today"
        return _replacement(match, day) if is_open or (is_plain and _is_event(sentence, match)) else match[0]

    return _RELATIVE.sub(replace_date, sentence)


def _is_event(sentence: str, match: re.Match[str]) -> bool:
    """Whether the clause around a date tells of something that happened then, or will."""
    bounds = [bound for bound in _BOUND.finditer(sentence) if not match.start() < bound.end() <= match.end()]
    start = max((bound.end() for bound in bounds if bound.end() <= match.start()), default=0)
    end = min((bound.start() for bound in bounds if bound.start() >= match.end()), default=len(sentence))
    before, after = sentence[start : match.start()], sentence[match.end() : end]
    clause, said = f"{before} {after}", (match["shift"] or "").lower()
    lead = (match["lead"] or "").lower()
    if lead == "as of":
        return not sentence[: match.start()].strip(" \t-*+")  # "as of today the API is v2"
    near, span = (match["near"] or "").lower(), (match["span"] or "").lower()
    is_ahead = said in _AHEAD or near == "next" or (near == "this" and span in _DAYS)
    is_other = (lead in _OTHER_LEADS and not is_ahead) or (lead == "of" and said == "today")
    if is_other or not _reports(sentence, match) or len(_HAPPENED.findall(clause)) > 1:
        return False  # of two verbs, nobody knows whose day it is: "we deleted rows created yesterday"
    is_span = bool(match["span"]) and match["span"].lower() not in _DAYS
    is_subject = is_span and not before.strip(" \t-*+") and _PREDICATE.match(after) is not None
    if _SUBORDINATE.search(before) or _SHOWN.search(sentence, 0, match.start()) or is_subject:
        return False
    if is_ahead:
        return _WILL_HAPPEN.search(clause) is not None
    if _PRESENT.search(clause):
        return False
    is_past = said in _AGO or bool(match["count"]) or near == "last"
    return bool(_HAPPENED.search(clause) or (is_past and _WAS.search(clause)))


def _reports(sentence: str, match: re.Match[str]) -> bool:
    """Whether a sentence opens as a report does, with or without its date in front."""
    rest = sentence[match.end() :]
    text = f"{sentence[: match.start()].rstrip()} {rest.lstrip(' ,')}"
    if _RETOLD.search(text) or not _FOLLOWS.match(rest):
        return False
    return _OPENING.match(text) is not None


@dataclass(frozen=True, slots=True)
class _When:
    lead: str
    """What stands before it where no word does: on a day, in a month."""
    name: str


def _replacement(match: re.Match[str], day: date) -> str:
    if match["near"] and match["near"].lower() != "last" and match["span"].lower() in _DAYS:
        # This Friday or the one after: people mean either, so only the day it was said on is added.
        return f"{match[0]} (said on {day.isoformat()})"
    try:
        when = _find(match, day)
    except (OverflowError, ValueError):
        return match[0]
    lead = match["lead"] or ""
    if lead.lower() == "of" and when.lead == "in":
        return match[0]  # "the end of last week" says more than its week would
    text = f"{lead or when.lead} {when.name}"
    opens = match[0][0].isdigit() and not match.string[: match.start()].strip(" \t-*+")
    return text[0].upper() + text[1:] if match[0][0].isupper() or opens else text


def _find(match: re.Match[str], day: date) -> _When:
    if match["shift"]:
        return _When("on", (day + timedelta(days=_SHIFTS[match["shift"].lower()])).isoformat())
    if match["count"]:
        said = match["count"].lower()
        count = _COUNTS.get(said) or int(said)
        return _UNITS[match["unit"].lower()](day, -min(count, _MOST))
    near, span = _NEAR[match["near"].lower()], match["span"].lower()
    if span in _DAYS:
        back = (day.weekday() - _DAYS.index(span) - 1) % 7 + 1
        return _When("on", (day - timedelta(days=back)).isoformat())
    return _UNITS[span](day, near)


def _week(day: date, shift: int) -> _When:
    monday = day - timedelta(days=day.weekday()) + timedelta(weeks=shift)
    return _When("in", f"the week of {monday.isoformat()}")


def _month(day: date, shift: int) -> _When:
    year, month = divmod(day.year * 12 + day.month - 1 + shift, 12)
    return _When("in", f"{_MONTHS[month]} {date(year, 1, 1).year}")


def _year(day: date, shift: int) -> _When:
    return _When("in", str(date(day.year + shift, 1, 1).year))


_UNITS: dict[str, Callable[[date, int], _When]] = {
    "day": lambda day, shift: _When("on", (day + timedelta(days=shift)).isoformat()),
    "week": _week,
    "month": _month,
    "year": _year,
}
