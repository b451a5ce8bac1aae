"""Learning without a model: labelled turns, and how many of the sentences kept were worth keeping.

    python bench/extraction.py [--show] [--json]

The rules were tuned on half of the kinds; the other half is only measured. Each turn is played as the first
of a session, and once more after another turn.

    wanted     turns that say something worth keeping
    found      of these, turns that left a memory of it and of nothing else
    pass       turns with nothing to keep
    false      turns that left a memory which is not wanted
    precision  found / (found + false)
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import extraction_fresh as fresh
from bench import extraction_kept as kept
from bench import extraction_natural as natural
from bench import extraction_passed as passed
from bench import extraction_passed_unseen as unseen
from bench import extraction_sight as sight

from sevenfold.core.events import ignore_event
from sevenfold.core.memories import read_memory
from sevenfold.core.messages import Message, Text
from sevenfold.layers.memory.extraction.drafts import (
    ConversationSnapshot,
    MemorySnapshot,
    RecordedMessage,
    StatementReader,
)
from sevenfold.layers.memory.extraction.gate import GateContext
from sevenfold.layers.memory.extraction.policy import Topic
from sevenfold.layers.memory.trust.taint import SourceTracker
from sevenfold.store.memory.directory import MemoryDir

Turns = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnKind:
    """Turns of one kind, by language."""

    name: str
    turns: Turns
    is_kept: bool
    is_tuned: bool
    is_direct: bool = False
    """Says in so many words that it is to be kept or followed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledTurn:
    """One turn and the part of it that is worth keeping, "" for nothing."""

    kind: TurnKind
    language: str
    text: str
    wanted: str


def keep(name: str, turns: Turns, *, is_tuned: bool, is_direct: bool = False) -> TurnKind:
    return TurnKind(name=name, turns=turns, is_kept=True, is_tuned=is_tuned, is_direct=is_direct)


def skip(name: str, turns: Turns, *, is_tuned: bool) -> TurnKind:
    return TurnKind(name=name, turns=turns, is_kept=False, is_tuned=is_tuned)


KINDS = (
    keep("standing instruction", kept.STANDING, is_tuned=True, is_direct=True),
    keep("correction", kept.CORRECTION, is_tuned=True, is_direct=True),
    keep("project fact", kept.FACT, is_tuned=True),
    keep("person", kept.PERSON, is_tuned=True),
    keep("beside a task", kept.MIXED, is_tuned=True, is_direct=True),
    keep("remember", kept.REMEMBER, is_tuned=False, is_direct=True),
    keep("preference", kept.PREFERENCE, is_tuned=False, is_direct=True),
    keep("environment", kept.ENVIRONMENT, is_tuned=False),
    keep("decision", kept.DECISION, is_tuned=False),
    keep("reference", kept.REFERENCE, is_tuned=False),
    skip("task", passed.TASK, is_tuned=True),
    skip("task with always", passed.TASK_ALWAYS, is_tuned=True),
    skip("limited in time", passed.SCOPE_TIME, is_tuned=True),
    skip("question", passed.QUESTION, is_tuned=True),
    skip("quote", passed.QUOTE, is_tuned=True),
    skip("pasted output", passed.PASTE, is_tuned=True),
    skip("small talk", passed.SMALL_TALK, is_tuned=True),
    skip("status", passed.STATUS, is_tuned=True),
    skip("negated instruction", passed.NEGATED, is_tuned=True),
    skip("limited in place", unseen.SCOPE_PLACE, is_tuned=False),
    skip("hypothetical", unseen.HYPOTHETICAL, is_tuned=False),
    skip("translation", unseen.TRANSLATION, is_tuned=False),
    skip("relayed message", unseen.RELAY, is_tuned=False),
    skip("approval", unseen.APPROVAL, is_tuned=False),
    skip("code", unseen.CODE, is_tuned=False),
    skip("reported speech", unseen.REPORTED, is_tuned=False),
    skip("complaint", unseen.COMPLAINT, is_tuned=False),
    skip("text to write", unseen.TO_WRITE, is_tuned=False),
    keep("fresh: direct", fresh.FRESH_DIRECT, is_tuned=False, is_direct=True),
    keep("fresh: natural", fresh.FRESH_NATURAL, is_tuned=False),
    skip("fresh: nothing", fresh.FRESH_NOTHING, is_tuned=False),
    keep("last: direct", fresh.LAST_DIRECT, is_tuned=False, is_direct=True),
    skip("last: nothing", fresh.LAST_NOTHING, is_tuned=False),
    keep("sight: direct", sight.SIGHT_KEPT, is_tuned=False, is_direct=True),
    skip("sight: nothing", sight.SIGHT_NOTHING, is_tuned=False),
    keep("sight: project", sight.SIGHT_PROJECT, is_tuned=False, is_direct=True),
    skip("sight: near misses", sight.SIGHT_NEAR, is_tuned=False),
    keep("sight: afterwards", sight.SIGHT_AFTER, is_tuned=False, is_direct=True),
    skip("sight: what is built", sight.SIGHT_BUILT, is_tuned=False),
    keep("natural: third set", natural.THIRD_KEPT, is_tuned=False, is_direct=True),
    skip("natural: third, nothing", natural.THIRD_NOTHING, is_tuned=False),
    keep("natural: fourth set", natural.FOURTH_KEPT, is_tuned=False, is_direct=True),
    skip("natural: fourth, nothing", natural.FOURTH_NOTHING, is_tuned=False),
)
"""The `fresh`, `last`, `sight` and `natural` ones were written when the rules stood, to see what those are
worth on other turns, and the rules were changed after they were measured: docs/layers/extraction.md has the
figures before that."""


TALK = Path(__file__).parent / "talk"
"""Natural talk, most of it with words of rules and nothing to keep: `# kind`, then a language and a turn in
each row. Each file but `tuning` was measured before the rules were changed for it."""


def read_talk() -> Iterator[TurnKind]:
    for file in sorted(TALK.glob("*.txt")):
        rows: dict[str, dict[str, tuple[str, ...]]] = {}
        kind = ""
        for row in file.read_text("utf-8").splitlines():
            language, _, text = row.partition("\t")
            if not text:
                kind = row.removeprefix("# ")
                rows[kind] = {}
                continue
            said = text.replace("\\n", "\n").replace("\\t", "\t")
            rows[kind][language] = (*rows[kind].get(language, ()), said)
        for name, turns in rows.items():
            is_kept = any("[[" in text for texts in turns.values() for text in texts)
            yield TurnKind(
                name=f"talk {file.stem}: {name}",
                turns=turns,
                is_kept=is_kept,
                is_tuned=file.stem == "tuning",
                is_direct=name == "direct",
            )


ALL_KINDS = (*KINDS, *read_talk())


def label(kind: TurnKind, language: str, marked: str) -> LabelledTurn:
    """`[[` and `]]` around the part worth keeping are taken off; without them it is the whole turn."""
    text = marked.replace("[[", "").replace("]]", "")
    part = marked[marked.index("[[") + 2 : marked.index("]]")] if "[[" in marked else text
    return LabelledTurn(kind=kind, language=language, text=text, wanted=part if kind.is_kept else "")


def label_turns() -> Iterator[LabelledTurn]:
    for kind in ALL_KINDS:
        for language, turns in kind.turns.items():
            for marked in turns:
                yield label(kind, language, marked)


BEFORE = (
    Message("user", (Text("Have a look at the failing test."),)),
    Message("assistant", (Text("Done: the parser had lost a line, and the suite passes. What is next?"),)),
)
"""What was said before, where a turn is not the first of its session."""
AFTER = Message("assistant", (Text("All right."),))
TODAY = date(2026, 11, 16)


class RuleLearner:
    """What extraction without a model writes about one turn, with an empty memory directory."""

    def __init__(self, folder: Path) -> None:
        self._memories = MemorySnapshot(
            MemoryDir.for_project(folder, environ={"SEVENFOLD_HOME": str(folder / "home")})
        )
        self._memories.refresh()

    def learn(self, text: str, before: Sequence[Message] = ()) -> tuple[str, ...]:
        """The bodies of the memories that are written."""
        said = [*before, Message("user", (Text(text),)), AFTER]
        history = [RecordedMessage(str(number), message) for number, message in enumerate(said)]
        context = GateContext(SourceTracker().update(said, TODAY), (), self._memories.near, TODAY)
        reader = StatementReader("bench", self._memories, ignore_event)
        run = reader.read(context, ConversationSnapshot(history, said), history[len(before) :], Topic())
        return tuple(read_memory(key, item.text).body for key, item in run.admitted.items())


@dataclass(slots=True)
class Tally:
    """Turns of some group, and what became of them."""

    wanted: int = 0
    found: int = 0
    passed: int = 0
    """Turns with nothing to keep."""
    false: int = 0
    """Turns that left something else than is wanted."""

    def add(self, turn: LabelledTurn, bodies: Sequence[str]) -> None:
        is_right = bool(turn.wanted) and any(shares_words(body, turn.wanted) for body in bodies)
        is_wrong = any(not turn.wanted or not shares_words(body, turn.wanted) for body in bodies)
        self.wanted += bool(turn.wanted)
        self.found += is_right
        self.passed += not turn.wanted
        self.false += is_wrong

    @property
    def recall(self) -> float:
        return self.found / self.wanted if self.wanted else 1.0

    @property
    def precision(self) -> float:
        return self.found / (self.found + self.false) if self.found + self.false else 1.0


def shares_words(body: str, wanted: str) -> bool:
    """Whether a memory says some of what is wanted, and nothing else. Under what problem it was decided does
    not count."""
    lines = [line for line in body.splitlines() if line.strip() and not line.startswith("**Why:**")]
    return bool(lines) and all(_is_about(_squeeze(line), _squeeze(wanted)) for line in lines)


def _is_about(line: str, wanted: str) -> bool:
    """A part of it, or the sentence that it is the larger part of."""
    return line in wanted or (wanted in line and len(line) < 2 * len(wanted))


def _squeeze(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def count_by(
    results: Sequence[tuple[LabelledTurn, tuple[str, ...]]], name: Callable[[LabelledTurn], str]
) -> dict[str, Tally]:
    tallies: dict[str, Tally] = {}
    for turn, bodies in results:
        tallies.setdefault(name(turn), Tally()).add(turn, bodies)
    return tallies


def name_half(turn: LabelledTurn) -> str:
    if turn.kind.name.startswith(("fresh", "last", "sight", "natural", "talk")):
        return f"{turn.kind.name.partition(':')[0]} turns"
    return "tuned kinds" if turn.kind.is_tuned else "unseen kinds"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--show", action="store_true", help="print each turn that went wrong")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        learner = RuleLearner(Path(root))
        turns = tuple(label_turns())
        results = [(turn, learner.learn(turn.text)) for turn in turns]
        later = [(turn, learner.learn(turn.text, BEFORE)) for turn in turns]
    direct = [item for item in results if item[0].kind.is_direct]
    tables = {
        "all": count_by([*results, *later], name_half),
        "first turn": count_by(results, name_half),
        "later turn": count_by(later, name_half),
        "kind": count_by(
            results,
            lambda turn: (
                f"{name_half(turn)[:6]} {turn.kind.name}" if "talk" not in turn.kind.name else turn.kind.name
            ),
        ),
        "language": count_by(results, lambda turn: turn.language),
        "direct statements": count_by(direct, lambda turn: turn.language),
    }
    if given.json:
        print(
            json.dumps(
                {name: {key: asdict(row) for key, row in table.items()} for name, table in tables.items()}
            )
        )
        return
    if given.show:
        show_wrong(results, "first")
        show_wrong(later, "later")
    print(f"{len(turns)} turns, {len(ALL_KINDS)} kinds")
    for name, table in tables.items():
        print_table(name, table)


def show_wrong(results: Sequence[tuple[LabelledTurn, tuple[str, ...]]], place: str) -> None:
    for turn, bodies in results:
        tally = Tally()
        tally.add(turn, bodies)
        if tally.false or tally.found < tally.wanted:
            print(f"{place} {turn.kind.name}, {turn.language}: {turn.text!r} -> {list(bodies)}")


def print_table(name: str, table: Mapping[str, Tally]) -> None:
    print(f"\n{name:34} wanted  found recall   pass  false precision")
    for key, row in table.items():
        wanted = f"{row.wanted:6} {row.found:6} {row.recall:6.2f}" if row.wanted else " " * 20
        print(f"{key:34} {wanted} {row.passed:6} {row.false:6} {row.precision:9.2f}")


if __name__ == "__main__":
    main()
