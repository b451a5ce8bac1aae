"""Learning without a model: labelled turns, and how many of the sentences kept were worth keeping.

    python -m bench.extraction [--show] [--json]

The rules were tuned on half of the kinds; the other half is only measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench import extraction_kept as kept
from bench import extraction_passed as passed
from bench import extraction_passed_unseen as unseen

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
)


def label(kind: TurnKind, language: str, marked: str) -> LabelledTurn:
    """`[[` and `]]` around the part worth keeping are taken off; without them it is the whole turn."""
    text = marked.replace("[[", "").replace("]]", "")
    part = marked[marked.index("[[") + 2 : marked.index("]]")] if "[[" in marked else text
    return LabelledTurn(kind=kind, language=language, text=text, wanted=part if kind.is_kept else "")


def label_turns() -> Iterator[LabelledTurn]:
    for kind in KINDS:
        for language, turns in kind.turns.items():
            for marked in turns:
                yield label(kind, language, marked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.parse_args()
    turns = tuple(label_turns())
    languages = {turn.language for turn in turns}
    print(f"{len(turns)} turns, {len(KINDS)} kinds, {len(languages)} languages")
    for kind in KINDS:
        count = sum(turn.kind is kind for turn in turns)
        wanted, half = "keep" if kind.is_kept else "pass", "tuned" if kind.is_tuned else "unseen"
        print(f"{kind.name:24} {wanted} {half:7} {count}")


if __name__ == "__main__":
    main()
