"""What a session goes on to use, and whether it survives a compaction by structural notes.

    python bench/notes.py --data DIR [--lost N] [--json]

Each session is cut where its estimated size passes 60,000, 100,000, 150,000, … tokens, and where it was
really compacted. The new view is the notes, the user messages that they do not hold word for word, and the
kept tail. Then, for everything that the rest of the session uses and that occurred before the cut:

    in view     it stands in the new view, or the session itself brought it up again before using it
    by pointer  the new view names a file that held it, or a spill
    lost        neither

Used are: lines of at least 40 characters that edits replace, paths in tool inputs, and identifiers in them.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import thread_time

from notes_uses import KINDS, Seen, Use, told, uses_of
from token_replay import Session, read_sessions, regrouped

from sevenfold.core.messages import Message, Text, ToolUse
from sevenfold.core.tokens.estimation import CALIBRATED_ESTIMATOR, estimate_text_tokens
from sevenfold.layers.compaction.keep_policy import choose_notes_start
from sevenfold.layers.compaction.summary import without_quoted_requests
from sevenfold.layers.session_notes.policy import NotesSettings, find_over_limit
from sevenfold.layers.session_notes.structural_notes import StructuralNotes

CUTS = (60_000, 100_000, 150_000, 200_000, 300_000, 400_000)
LEFT = 6
"""Messages that must follow a cut: with fewer there is nothing to lose."""
SETTINGS = NotesSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of the things used after one cut."""

    session: str
    at: int
    notes_tokens: int
    kept_tokens: int
    requests: int
    verbatim: int
    in_notes: int
    """User messages that the notes alone hold word for word."""
    over_limit: int
    shares: Counter[str]
    lost: tuple[Use, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    first_us: float
    last_us: float
    median_us: float
    render_ms: float
    messages: int


def cut_places(session: Session, sizes: Sequence[int]) -> list[int]:
    """After which messages the session is cut: before a reply, with enough left to come."""
    places: set[int] = set()
    total, wanted = 0, list(CUTS)
    for place, (line, size) in enumerate(zip(session.lines, sizes, strict=True)):
        if line.has_boundary and place:
            places.add(place - 1)
        total += size
        if wanted and total >= wanted[0] and line.message.role == "user":
            places.add(place)
            wanted = [each for each in wanted if each > total]
    return sorted(place for place in places if LEFT <= place < len(sizes) - LEFT)


def judge(session: Session, place: int, sizes: Sequence[int], notes: str) -> Verdict:
    """What the rest of the session would miss after a compaction behind this message."""
    messages = [line.message for line in session.lines]
    before, after = messages[: place + 1], messages[place + 1 :]
    start = choose_notes_start(before, sizes[: place + 1], place, SETTINGS)
    kept = before[start:]
    requests = [text for message in before[:start] for text in human_texts(message)]
    # As the engine shows them: its own copy of the user's words, and the notes without theirs.
    view = "\n".join((without_quoted_requests(notes, requests), *requests, told(kept)))
    seen = Seen(before)
    shares: Counter[str] = Counter()
    lost: list[Use] = []
    met: set[Use] = set()
    fresh = ""
    for message in after:
        for block in message.blocks:
            if isinstance(block, ToolUse):
                for use in sorted(uses_of(block) - met, key=lambda use: (use.kind, use.text)):
                    met.add(use)
                    if not seen.holds(use.text):
                        continue
                    fate = _fate(use, view, fresh, seen)
                    shares[f"{use.kind} {fate}"] += 1
                    if fate == "lost":
                        lost.append(use)
        fresh += told((message,))
    return Verdict(
        session=session.name,
        at=place,
        notes_tokens=round(estimate_text_tokens(notes)),
        kept_tokens=sum(sizes[start : place + 1]),
        requests=len(requests),
        verbatim=sum(request in view for request in requests),
        in_notes=sum(request in notes for request in requests),
        over_limit=len(find_over_limit(notes, SETTINGS, estimate_text_tokens)),
        shares=shares,
        lost=tuple(lost),
    )


def _fate(use: Use, view: str, fresh: str, seen: Seen) -> str:
    if use.text in view:
        return "in view"
    if use.text in fresh:
        return "brought up again"
    if use.kind == "path" and is_named(use.text, view):
        return "by pointer"
    return "by pointer" if any(is_named(source, view) for source in seen.sources(use.text)) else "lost"


def is_named(path: str, view: str) -> bool:
    """Whether the view says it, whole or as a name beside its folder: `- src/: a.py, b.py`."""
    if path in view:
        return True
    folder, _, name = path.rpartition("/")
    at = view.find(f"{folder}/: ") if folder else -1
    return at >= 0 and name in view[at : view.find("\n", at)].replace(",", "").split(" ")


def human_texts(message: Message) -> list[str]:
    """A message's words that are no tool's."""
    if message.role != "user":
        return []
    return [block.text for block in message.blocks if isinstance(block, Text) and block.text.strip()]


def weigh(message: Message) -> int:
    return round(sum(CALIBRATED_ESTIMATOR.weigh(block) for block in message.blocks))


def run(session: Session) -> list[Verdict]:
    sizes = [weigh(line.message) for line in session.lines]
    places = cut_places(session, sizes)
    notes = StructuralNotes()
    found: list[Verdict] = []
    for place, line in enumerate(session.lines):
        notes.add(line.message)
        if place in places:
            found.append(judge(session, place, sizes, notes.render(SETTINGS)))
    return found


def time_notes(sessions: Sequence[Session]) -> Speed:
    """One long session, made of all of them three times over: what a message costs in the first part and in
    the last, which hold the same messages."""
    messages = [line.message for session in sessions for line in session.lines] * 3
    notes = StructuralNotes()
    costs: list[float] = []
    for message in messages:
        began = thread_time()
        notes.add(message)
        costs.append((thread_time() - began) * 1e6)
    began = thread_time()
    notes.render(SETTINGS)
    rendered = (thread_time() - began) * 1e3
    part = max(1, len(costs) // 3)
    return Speed(
        first_us=sum(costs[:part]) / part,
        last_us=sum(costs[-part:]) / part,
        median_us=median(costs),
        render_ms=rendered,
        messages=len(messages),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--lost", type=int, default=0, help="show this many lost things a cut")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    sessions = [
        *read_sessions(options.data, "claude"),
        *(regrouped(session) for session in read_sessions(options.data, "codex")),
    ]
    if not sessions:
        raise SystemExit(f"error: no sessions/*/*.jsonl in {options.data}; give --data the folder above it")
    verdicts = [verdict for session in sessions for verdict in run(session)]
    report(verdicts, time_notes(sessions), options.lost, as_json=options.json)


def share_of(shares: Counter[str], kinds: Sequence[str], fates: Sequence[str]) -> float:
    """Of the things of these kinds that only the new view can give: those with one of these fates."""
    total = sum(shares[f"{kind} {fate}"] for kind in kinds for fate in ("in view", "by pointer", "lost"))
    return sum(shares[f"{kind} {fate}"] for kind in kinds for fate in fates) / total if total else 1.0


def report(verdicts: Sequence[Verdict], speed: Speed, lost: int, *, as_json: bool) -> None:
    total = sum((verdict.shares for verdict in verdicts), Counter[str]())
    each = sorted(share_of(verdict.shares, KINDS, ("in view", "by pointer")) for verdict in verdicts)
    figures = {
        "cuts": len(verdicts),
        "reachable": share_of(total, KINDS, ("in view", "by pointer")),
        "in_view": share_of(total, KINDS, ("in view",)),
        "reachable_median_cut": median(each),
        "reachable_worst_cut": each[0],
        **{f"reachable_{kind}": share_of(total, (kind,), ("in view", "by pointer")) for kind in KINDS},
        "verbatim": sum(v.verbatim for v in verdicts) / max(1, sum(v.requests for v in verdicts)),
        "verbatim_in_notes": sum(v.in_notes for v in verdicts) / max(1, sum(v.requests for v in verdicts)),
        "notes_tokens_median": median(verdict.notes_tokens for verdict in verdicts),
        "notes_tokens_max": max(verdict.notes_tokens for verdict in verdicts),
        "over_limit": sum(verdict.over_limit for verdict in verdicts),
        "message_us_median": speed.median_us,
        "message_us_first_third": speed.first_us,
        "message_us_last_third": speed.last_us,
        "render_ms": speed.render_ms,
    }
    if as_json:
        print(json.dumps(figures))
        return
    for verdict in verdicts:
        shares = verdict.shares
        print(
            f"{verdict.session[:20]:20} cut {verdict.at:4} notes {verdict.notes_tokens:6,} "
            f"kept {verdict.kept_tokens:6,}  used {shares.total():4} "
            f"in view {share_of(shares, KINDS, ('in view',)):.3f} "
            f"reachable {share_of(shares, KINDS, ('in view', 'by pointer')):.3f}"
        )
        for use in verdict.lost[:lost]:
            print(f"    lost {use.kind}: {use.text[:100]}")
    print(dict(sorted(total.items())))
    for name, value in figures.items():
        print(f"{name:24} {value:,.3f}" if isinstance(value, float) else f"{name:24} {value:,}")


if __name__ == "__main__":
    main()
