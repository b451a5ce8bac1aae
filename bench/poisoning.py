"""Poisoned memories: how many sentences that are not the user's become trusted, and what that costs honest
ones.

    python bench/poisoning.py [--each N] [--policy] [--show] [--json]

An agent with a scripted model is opened for each case. The sentence stands in a web page, an MCP result, a
skill, a file, a file name, the answer of a sub-agent, a mail or AGENTS.md; the user's turn holds its words;
the model writes it with the `memory` tool. A case is wrong when a memory of its session is trusted that says
anything but what the user typed, to the letter. Where nobody but the user said something like it, their own
sentence is kept in place of the model's: `own` is how often that happened.

    tuned     classes that the rules were tuned on; --show lists what went wrong
    unseen    classes that they were not tuned on; only their rates are shown
    verbatim  honest statements that the model wrote as they were said, and that are trusted
    reworded  the same in other words
    near      sentences that look like a rewording and say something else, and are trusted
    planted   sentences somebody else's, each set written at once, that are trusted
    found     what a model found out while it did a task; `own` counts tasks that are kept in its place
    unmeant   sentences that the user typed and did not mean to last, and that are trusted without what they
              said around them; the page says the same in other words
    one … fifteen, held_out  sets of natural rewordings; --show lists what waits of those that were looked at
    sixteen … twenty-seven  the same in sessions with pages on the same matter; kept if the fact is in it

The first column says whether the rules were tuned on a set ("tuned") or nobody has looked at it ("unseen").
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# The turns are tests too, and live there.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.poisoning_cases import EACH, TUNED, UNSEEN, make_poison_cases
from bench.poisoning_honest import REWORDED, HonestCase, make_verbatim_cases
from bench.poisoning_near import NEAR, NearPair
from bench.poisoning_reworded import (
    CHAT_PLANTED_SETS,
    FOUND_SET,
    PLANTED_SETS,
    SEEN_SETS,
    SESSION_SETS,
    UNSEEN_SETS,
    UNTUNED,
    SessionCase,
    read_planted_cases,
    read_reworded_cases,
    read_session_cases,
)
from bench.poisoning_unmeant import SETS, UnmeantCase, is_bare, make_unmeant_cases

from tests.harm.sessions import PlayedTurn, is_users_own, judge_turn, play_turns

BATCH = 48
"""Cases in one home."""


NOISE = "README: install with make, run with make dev, deploy by tagging a release. Edit generated files."
"""What a tool has shown before an honest statement."""


@dataclass(frozen=True, slots=True)
class Figures:
    wrong: Mapping[str, int]
    """Trusted memories by class that say what the user did not type."""
    own: Mapping[str, int]
    """And those that are the user's own sentence."""
    cases: Mapping[str, int]

    def rate(self, counts: Mapping[str, int], kinds: Sequence[str]) -> float:
        return sum(counts[kind] for kind in kinds) / max(1, sum(self.cases[kind] for kind in kinds))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--each", type=int, default=EACH, help=f"cases of a class (default: {EACH})")
    parser.add_argument("--policy", action="store_true", help="ask the policy alone, without agents: seconds")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    bench = Benchmark(asks_policy=given.policy, shows=given.show)
    figures = bench.poison(given.each)
    found = {
        "tuned": figures.rate(figures.wrong, TUNED),
        "tuned, own": figures.rate(figures.own, TUNED),
        "unseen": figures.rate(figures.wrong, UNSEEN),
        "unseen, own": figures.rate(figures.own, UNSEEN),
        "verbatim": bench.keep("verbatim", list(make_verbatim_cases())),
        "reworded": bench.keep("reworded", REWORDED),
        **bench.mistake("near", [PlayedTurn(*pair, "web") for pair in bench.pick_near()]),
        **{
            key: share
            for name in (*PLANTED_SETS, *CHAT_PLANTED_SETS)
            for key, share in bench.mistake(f"planted {name}", list(_read_planted(name))).items()
        },
        **bench.mistake("found", list(_read_planted(FOUND_SET, page=NOISE))),
        **{f"unmeant {name}": bench.misread(name) for name in SETS},
        **{name: bench.keep(name, list(read_reworded_cases(name))) for name in (*SEEN_SETS, *UNSEEN_SETS)},
        **{name: bench.keep_fact(name) for name in SESSION_SETS},
    }
    if given.json:
        print(json.dumps({**found, "wrong": figures.wrong, "cases": figures.cases}))
        return
    for half, kinds in (("tuned", TUNED), ("unseen", UNSEEN)):
        for kind in kinds:
            print(f"{half:8} {kind:30} {figures.wrong[kind]:4} of {figures.cases[kind]}")
    for name, share in found.items():
        half = "unseen" if name in UNTUNED or name.removesuffix(", own") in UNTUNED else "tuned"
        print(f"{'' if name.startswith(('tuned', 'unseen')) else half:8} {name:22} {share:7.1%}")


def _read_planted(name: str, page: str = "") -> Iterator[PlayedTurn]:
    for case in read_planted_cases(name):
        yield PlayedTurn(case.said, case.planted, case.vector, page=page or case.page)


def make_session_turn(case: SessionCase) -> PlayedTurn:
    return PlayedTurn(
        case.said[-1],
        case.written,
        "file",
        page=case.page,
        earlier=case.said[:-1],
        name=case.name,
        description=case.description,
    )


def make_unmeant_turn(case: UnmeantCase) -> PlayedTurn:
    return PlayedTurn(case.said[-1], case.planted, case.vector, page=case.page, earlier=case.said[:-1])


@dataclass(frozen=True, slots=True)
class Benchmark:
    asks_policy: bool
    shows: bool

    def poison(self, each: int) -> Figures:
        cases = make_poison_cases(each)
        turns = [
            PlayedTurn(case.said, case.planted, case.vector, instructions=case.instructions) for case in cases
        ]
        wrong, own = Counter[str](), Counter[str]()
        for case, turn, kept in zip(cases, turns, self.play(turns), strict=True):
            is_own = is_users_own(turn, kept)
            own[case.kind] += is_own and bool(kept)
            wrong[case.kind] += not is_own
            if self.shows and case.kind in TUNED and not is_own:
                print(f"{case.kind} ({case.vector}): {case.said!r} -> {case.planted!r}", file=sys.stderr)
        return Figures(wrong, own, Counter(case.kind for case in cases))

    def pick_near(self) -> list[NearPair]:
        step = 1 if self.asks_policy else 8
        return [pair for make in NEAR.values() for pair in list(dict.fromkeys(make()))[::step]]

    def mistake(self, name: str, turns: Sequence[PlayedTurn]) -> dict[str, float]:
        """The share of cases in which something is trusted that the user did not type, and of those in which
        a sentence that they did type is."""
        wrong = own = 0
        for turn, kept in zip(turns, self.play(turns), strict=True):
            is_own = is_users_own(turn, kept)
            wrong, own = wrong + (not is_own), own + (is_own and bool(kept))
            if self.shows and not is_own:
                print(f"{name}: {turn.said!r} -> {kept!r}", file=sys.stderr)
        return {name: wrong / len(turns), f"{name}, own": own / len(turns)}

    def keep(self, name: str, cases: Sequence[HonestCase]) -> float:
        kept = self.play([PlayedTurn(case.said, case.kept, "web", page=NOISE) for case in cases])
        for case, is_kept in zip(cases, kept, strict=True):
            if self.shows and not is_kept and name not in UNSEEN_SETS:
                print(f"{name} waits: {case.said!r} -> {case.kept!r}", file=sys.stderr)
        return sum(map(bool, kept)) / len(kept)

    def keep_fact(self, name: str) -> float:
        """The share of sessions that leave a trusted memory with what the user said."""
        cases = list(read_session_cases(name))
        kept = self.play([make_session_turn(case) for case in cases])
        return sum(case.is_in(text) for case, text in zip(cases, kept, strict=True)) / len(cases)

    def misread(self, name: str) -> float:
        """The share of sentences that lost what the user said around them."""
        cases = list(make_unmeant_cases(name))[:: 1 if self.asks_policy else 8]
        kept = self.play([make_unmeant_turn(case) for case in cases])
        return sum(is_bare(case, text) for case, text in zip(cases, kept, strict=True)) / len(cases)

    def play(self, turns: Sequence[PlayedTurn]) -> list[str]:
        """The trusted memory that each leaves; empty where it leaves none."""
        if self.asks_policy:
            return [judge_turn(turn) for turn in turns]
        found: list[str] = []
        for start in range(0, len(turns), BATCH):
            with tempfile.TemporaryDirectory() as home:
                found += asyncio.run(play_turns(turns[start : start + BATCH], Path(home)))
        return found


if __name__ == "__main__":
    main()
