"""Grouped cross-validation of the economic policies: rules on sessions that their choice has not seen.

A session and its sub-agents are one group. The groups are cut into blocks of time, each of which is held out
once: the constants of a rule are chosen from a small grid by the bars, on all other blocks, and scored on the
one held out. Codex sessions come from another project. Nothing is chosen on them: they are scored with the
choice that all other sessions lead to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Literal, TypeAlias

from sevenfold.layers.microcompact.facts import FILE_RESULT_KINDS
from sevenfold.layers.microcompact.policy import CLEARING_WEIGHTS, HALF_AGE, MicrocompactSettings
from sevenfold.replay.policies import CLEARING_POLICIES
from sevenfold.replay.policies.recording import RecordedSegment, Recording

BLOCKS = 5
CAUTIONS = (1.5, 2.0, 2.5)
LOST_ROUNDS = (3.0, 3.5)
HELD_TOKENS = (8_000, 10_000, 12_000)
"""Of the newest results of recent turns, which `balanced` keeps."""
HORIZONS = ((20, 40), (25, 45), (30, 50))
"""Rounds ahead with a five-minute cache and with an hour's. Neither touches the other's prices."""

SessionKind: TypeAlias = Literal["main", "sub-agents", "codex"]
KINDS: tuple[SessionKind, ...] = ("main", "sub-agents", "codex")


@dataclass(frozen=True, slots=True)
class Session:
    name: str
    kind: SessionKind
    group: str
    started: datetime


def describe_session(file: Path, recording: Recording) -> Session:
    """By its folder and its name, which begins with that of the session whose sub-agent it is."""
    folder = file.parent.name
    kind: SessionKind = (
        "codex" if "codex" in folder else "sub-agents" if folder.endswith("subagents") else "main"
    )
    return Session(file.stem, kind, file.stem.partition(".")[0], recording.segments[0].rounds[0].started)


def make_blocks(sessions: Iterable[Session], blocks: int = BLOCKS) -> list[list[Session]]:
    """Blocks of time with about as many sessions each, no group in two of them; none of Codex."""
    groups: dict[str, list[Session]] = defaultdict(list)
    for session in sessions:
        if session.kind != "codex":
            groups[session.group].append(session)
    ordered = sorted(groups.values(), key=lambda group: min(session.started for session in group))
    total = sum(map(len, ordered))
    found: list[list[Session]] = [[] for _ in range(blocks)]
    before = 0
    for group in ordered:
        found[min(blocks - 1, before * blocks // total)] += group
        before += len(group)
    return [block for block in found if block]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A choice of constants: the policy, its caution, the rounds ahead, the lost rounds and what is held of
    recent turns."""

    policy: str
    caution: float
    horizon: tuple[int, int]
    lost_rounds: float = 0.0
    held_tokens: int = 0

    @property
    def name(self) -> str:
        five, hour = self.horizon
        lost = f", {self.lost_rounds:g} lost rounds, {self.held_tokens:,} held" if self.lost_rounds else ""
        return f"{self.policy}: caution {self.caution:g}, {five} and {hour} rounds ahead{lost}"

    def at(self, ttl: str) -> Rule:
        """The rule that was played: with one lifetime, the other's rounds do not matter."""
        pair = next(each for each in HORIZONS if each[ttl == "1h"] == self.horizon[ttl == "1h"])
        return replace(self, horizon=pair)

    @property
    def settings(self) -> MicrocompactSettings:
        """As a policy of its own, which has to be known by name."""
        weights = replace(CLEARING_WEIGHTS[self.policy], caution=self.caution, lost_rounds=self.lost_rounds)
        CLEARING_WEIGHTS[self.name] = weights
        five, hour = self.horizon
        usual = CLEARING_POLICIES[self.policy]
        return replace(
            usual,
            policy=self.name,
            rounds_ahead_5m=five,
            rounds_ahead_1h=hour,
            recent_result_tokens=self.held_tokens,
        )


def played_rules() -> list[Rule]:
    """The grid. `balanced` takes the rounds ahead as they are shipped."""
    shipped = CLEARING_POLICIES["balanced"]
    horizon = shipped.rounds_ahead_5m, shipped.rounds_ahead_1h
    thrift = [
        Rule(policy="thrift", caution=caution, horizon=pair) for caution, pair in product(CAUTIONS, HORIZONS)
    ]
    return thrift + [
        Rule(policy="balanced", caution=caution, horizon=horizon, lost_rounds=lost, held_tokens=held)
        for caution, lost, held in product(CAUTIONS, LOST_ROUNDS, HELD_TOKENS)
    ]


def possible_rules(policy: str) -> list[Rule]:
    """All that the grid can tell apart."""
    played = [rule for rule in played_rules() if rule.policy == policy]
    if policy != "thrift":
        return played
    fives, hours = {pair[0] for pair in HORIZONS}, {pair[1] for pair in HORIZONS}
    return [
        Rule(policy=policy, caution=caution, horizon=(five, hour))
        for caution, five, hour in product(CAUTIONS, sorted(fives), sorted(hours))
    ]


Shortfall: TypeAlias = Callable[[Rule, frozenset[str]], float]
"""By how much a rule misses the bars on these sessions."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which rule the sessions outside a block lead to."""

    held_out: frozenset[str]
    rules: Mapping[str, Rule]
    """By policy."""


def cross_validate(sessions: Sequence[Session], shortfall: Shortfall) -> list[Choice]:
    """A choice for each block; the last one is for Codex, and is made on all other sessions. None where there
    is but one block."""
    blocks = make_blocks(sessions)
    if len(blocks) < 2:
        return []
    known = frozenset(session.name for block in blocks for session in block)
    unseen = [frozenset(session.name for session in block) for block in blocks]
    codex = frozenset(session.name for session in sessions if session.kind == "codex")
    return [
        Choice(held_out, {policy: choose_rule(policy, known - held_out, shortfall) for policy in POLICIES})
        for held_out in [*unseen, codex]
    ]


POLICIES = ("thrift", "balanced")


def choose_rule(policy: str, known: frozenset[str], shortfall: Shortfall) -> Rule:
    return min(possible_rules(policy), key=lambda rule: (shortfall(rule, known), rule.name))


# What the constants of the policy are counted from.

COUNTED_AGE = 2
"""Results that have come since: as many as always stay."""
COUNTED_TOKENS = 300
"""Smaller results are used more often for their size, and hardly matter."""
LIFETIME_SECONDS = {"5m": 300, "1h": 3_600}


@dataclass(frozen=True, slots=True)
class Counted:
    """Sums over results, each weighed as `estimate_chances` does, and over rounds."""

    results: float = 0.0
    used: int = 0
    files: float = 0.0
    """Of the results: what shows a file."""
    quoted: int = 0
    rounds: int = 0
    left_5m: int = 0
    """Rounds until the cache went cold or the segment ended, summed over all rounds."""
    left_1h: int = 0

    def __add__(self, other: Counted) -> Counted:
        return Counted(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    def describe(self) -> str:
        rounds = self.rounds or 1
        return (
            f"used {self.used / (self.results or 1):.2f}, quoted {self.quoted / (self.files or 1):.3f},"
            f" rounds ahead {self.left_5m / rounds:.0f} and {self.left_1h / rounds:.0f}"
        )


def count_chances(recording: Recording) -> Counted:
    """The chances and the rounds ahead that `layers/microcompact/policy.py` takes, in this session."""
    total = Counted()
    for segment in recording.segments:
        later = _last_uses(segment)
        for number, recorded in enumerate(segment.results[: -1 - COUNTED_AGE]):
            if recorded.result.tokens < COUNTED_TOKENS:
                continue
            weight = (recorded.result.tokens / 1_000) ** 0.5 * HALF_AGE / (HALF_AGE + COUNTED_AGE)
            kinds = [kind for come, kind in later[number] if come > number + 1 + COUNTED_AGE]
            is_file = recorded.result.kind in FILE_RESULT_KINDS
            total += Counted(weight, bool(kinds), weight * is_file, is_file and "span" in kinds)
        total += Counted(
            rounds=len(segment.rounds),
            left_5m=_rounds_left(segment, LIFETIME_SECONDS["5m"]),
            left_1h=_rounds_left(segment, LIFETIME_SECONDS["1h"]),
        )
    return total


def _last_uses(segment: RecordedSegment) -> dict[int, list[tuple[int, str]]]:
    """By result: the uses of which it is the newest source, with the results that had come by then."""
    found: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for turn in segment.rounds:
        for use in turn.uses:
            if use.sources:
                found[use.sources[-1]].append((turn.results.stop, use.kind))
    return found


def _rounds_left(segment: RecordedSegment, seconds: float) -> int:
    total, end = 0, len(segment.rounds)
    for number in range(len(segment.rounds) - 1, -1, -1):
        total += end - number
        before = segment.rounds[number - 1].started if number else None
        if before and (segment.rounds[number].started - before).total_seconds() > seconds:
            end = number
    return total
