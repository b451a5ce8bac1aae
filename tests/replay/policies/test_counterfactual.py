"""What a recorded session would have cost under a policy."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.cache.prompt_blocks import DEFAULT_CACHE_CHOICES
from sevenfold.core.cache.prompt_cache import CacheScope, PromptCache, PromptPart
from sevenfold.core.canonical import Digest
from sevenfold.core.messages import ToolUseId
from sevenfold.core.prices import CATALOG
from sevenfold.layers.microcompact.facts import MARKER_TOKENS
from sevenfold.layers.microcompact.policy import ClearableResults, ClearingFacts, ClearingPlan
from sevenfold.replay.policies import CLEARING_POLICIES, DEFAULT_POLICY
from sevenfold.replay.policies.counterfactual import CacheRates, PlayedRequest, play_recording
from sevenfold.replay.policies.recording import Recording
from tests.replay.policies.recordings import (
    FIVE,
    FRAME_TOKENS,
    HOUR,
    Made,
    busy_round,
    made_rounds,
    recording,
    segment,
)

READ, WRITE = FIVE.prices.read, FIVE.prices.write
MODEL = CATALOG.find("claude-opus-5-5")
"""One whose cache takes prefixes as short as the frame of these sessions."""


def test_a_session_with_everything_kept_reads_what_was_written_and_writes_what_is_new() -> None:
    made = recording(
        segment(
            [
                Made(said_tokens=200, results=(500,)),
                Made(said_tokens=100, results=(300,)),
                Made(said_tokens=50, minutes=6),
            ]
        )
    )
    found = play_recording(made, CLEARING_POLICIES["keep"], FIVE)
    first, second, third = 1_700, 2_100, 2_150
    assert found.cost == pytest.approx(
        WRITE * first + READ * first + WRITE * (second - first) + WRITE * third
    )
    assert (found.cuts, found.rereads, found.peak_tokens) == (0, 0, third)


def test_clearing_on_a_cold_cache_saves_at_once() -> None:
    made = recording(
        segment(
            [*[Made(said_tokens=100, results=(1_000,)) for _ in range(8)], Made(said_tokens=100, minutes=30)]
        )
    )
    kept, ours = (
        play_recording(made, CLEARING_POLICIES["keep"], FIVE),
        play_recording(made, CLEARING_POLICIES["balanced"], FIVE),
    )
    gone = 6 * (1_000 - MARKER_TOKENS)
    assert (ours.cuts, ours.cleared) == (1, 6)
    assert kept.cost - ours.cost == pytest.approx(WRITE * gone)


def test_a_line_that_is_quoted_after_its_result_was_cleared_is_read_again_once() -> None:
    rounds = [
        *[Made(said_tokens=100, results=(1_000,)) for _ in range(8)],
        Made(said_tokens=100, minutes=30, quotes=(0,)),
        Made(quotes=(0,)),
    ]
    found = play_recording(recording(segment(rounds)), CLEARING_POLICIES["thrift"], FIVE)
    view = FRAME_TOKENS + 9 * 100 + 8_000 - 6 * (1_000 - MARKER_TOKENS)
    assert found.rereads == 1
    assert found.reread_cost == pytest.approx(READ * view + WRITE * 1_000)
    assert (found.wanted, found.in_view, found.one_pointer_away) == (2, 1, 1)


def test_a_bare_marker_leads_back_to_files_only() -> None:
    for tool, reached in (("Read", 1), ("Bash", 0)):
        rounds = [Made(said_tokens=100, results=(1_000,), tool=tool) for _ in range(8)]
        made = recording(segment([*rounds, Made(minutes=90, quotes=(0,))]))
        found = play_recording(made, CLEARING_POLICIES["fixed"], FIVE)
        assert (found.wanted, found.in_view, found.one_pointer_away) == (1, 0, reached)


def test_what_a_boundary_took_is_wanted_and_out_of_reach() -> None:
    from sevenfold.replay.policies.fidelity import ResultUse

    part = segment([Made(said_tokens=100)])
    lost = replace(part, rounds=(replace(part.rounds[0], uses=(ResultUse("name", ()),)),))
    found = play_recording(recording(part, lost), CLEARING_POLICIES["keep"], FIVE)
    assert (found.wanted, found.in_view, found.one_pointer_away, found.rereads) == (1, 0, 0, 0)


def test_nothing_is_carried_over_a_boundary_but_the_frame() -> None:
    part = segment([Made(said_tokens=100, results=(4_000,)) for _ in range(9)])
    after = segment([Made(said_tokens=100)], previous=part.rounds[-1].started)
    whole, first = (
        play_recording(recording(part, after), CLEARING_POLICIES["keep"], HOUR),
        play_recording(recording(part), CLEARING_POLICIES["keep"], HOUR),
    )
    assert whole.cost - first.cost == pytest.approx(HOUR.prices.read * FRAME_TOKENS + HOUR.prices.write * 100)


def test_the_default_policy_is_ours() -> None:
    assert CLEARING_POLICIES[DEFAULT_POLICY].policy == "balanced"
    assert set(CLEARING_POLICIES) == {"keep", "fixed", "ski", "thrift", "balanced"}


@given(
    st.lists(made_rounds, min_size=1, max_size=14),
    st.sampled_from([FIVE, HOUR]),
    st.sampled_from(sorted(CLEARING_POLICIES)),
)
def test_a_session_played_twice_costs_the_same_and_its_shares_are_shares(
    made: list[Made], rates: CacheRates, policy: str
) -> None:
    whole = recording(segment(made))
    found = play_recording(whole, CLEARING_POLICIES[policy], rates)
    assert found == play_recording(whole, CLEARING_POLICIES[policy], rates)
    assert found.in_view + found.one_pointer_away <= found.wanted
    assert found.cost >= found.reread_cost >= 0


@dataclass(frozen=True, slots=True)
class Piece:
    name: str
    tokens: int
    request: int
    """The request that brought it."""


@dataclass(slots=True, kw_only=True)
class Mirror:
    """The views of a played session, put together block by block and billed by the cache model.

    It marks what the fast account takes for marked: the end of every request; after a pause, what stands
    before the first result; after a cut, what stands before the first result behind it.
    """

    made: Recording
    rates: CacheRates
    cache: PromptCache = field(
        default_factory=lambda: PromptCache(replace(DEFAULT_CACHE_CHOICES, refresh="prefix"))
    )
    view: list[Piece] = field(default_factory=list[Piece])
    reads: list[int] = field(default_factory=list[int])
    _sizes: dict[ToolUseId, int] = field(default_factory=dict[ToolUseId, int])
    _natural: int = FRAME_TOKENS
    _requests: int = 0
    _rounds: int = 0
    _last: PlayedRequest | None = None

    def take(self, sent: PlayedRequest) -> None:
        is_again = any(" again " in use for use in sent.joined)
        self._requests += 1
        if is_again:
            for use in sent.joined:
                self._join(use, self._sizes[ToolUseId(use.partition(" again ")[0])])
        else:
            self._grow(sent)
        assert sum(piece.tokens for piece in self.view) + FRAME_TOKENS == self._whole(sent)
        is_cold = self._last is None or sent.at - self._last.at > self.rates.ttl
        marks = {len(self.view)}
        if is_cold:
            marks.add(self._edge(0))
        self._clear(sent, marks)
        self._bill(sent, marks)
        if not is_again:
            self._last = sent

    def _grow(self, sent: PlayedRequest) -> None:
        part = self.made.segments[0]
        turn = part.rounds[self._rounds]
        self._rounds += 1
        for number in turn.results:
            recorded = part.results[number]
            self._say(recorded.place - self._natural)
            self._join(recorded.result.id, recorded.result.tokens)
            self._sizes[recorded.result.id] = recorded.result.tokens
            self._natural = recorded.place + recorded.result.tokens
        self._say(turn.tokens - self._natural)
        self._natural = turn.tokens
        assert [part.results[number].result.id for number in turn.results] == list(sent.joined)

    def _whole(self, sent: PlayedRequest) -> int:
        """The size of the view before the cut."""
        return sent.view_tokens + sum(self._saved(use) for use in sent.cleared)

    def _saved(self, use: ToolUseId) -> int:
        return self._sizes[use] - MARKER_TOKENS

    def _say(self, tokens: int) -> None:
        self.view.append(Piece(f"said {len(self.view)} {self._requests}", tokens, self._requests))

    def _join(self, use: ToolUseId, tokens: int) -> None:
        self._sizes[use] = tokens
        self.view.append(Piece(use, tokens, self._requests))

    def _edge(self, after: int) -> int:
        """Before what brought the first clearable piece from here on."""
        for piece in self.view[after:]:
            if piece.name in self._sizes and piece.tokens > MARKER_TOKENS:
                return next(at for at, each in enumerate(self.view) if each.request == piece.request)
        return len(self.view)

    def _clear(self, sent: PlayedRequest, marks: set[int]) -> None:
        if not sent.cleared:
            return
        gone = set(sent.cleared)
        last = max(at for at, piece in enumerate(self.view) if piece.name in gone)
        self.view = [
            Piece(f"marker of {piece.name}", MARKER_TOKENS, piece.request) if piece.name in gone else piece
            for piece in self.view
        ]
        marks.add(self._edge(last + 1))

    def _bill(self, sent: PlayedRequest, marks: set[int]) -> None:
        parts = [_part("frame", FRAME_TOKENS, "", marked=self.rates.ttl)]
        for at, piece in enumerate(self.view, 1):
            ttl = self.rates.ttl if at in marks else None
            parts.append(_part(piece.name, piece.tokens, parts[-1].digest, marked=ttl))
        bill = self.cache.look_up(CacheScope("test"), MODEL, parts, sent.at)
        self.cache.begin_response(bill, sent.at)
        self.reads.append(bill.read)


def _part(name: str, tokens: int, before: str, *, marked: timedelta | None) -> PromptPart:
    kind = "text" if name.startswith("said") else "tool_result"
    return PromptPart(
        path=name, level="messages", kind=kind, digest=Digest(f"{before}/{name}"), tokens=tokens, ttl=marked
    )


@given(st.integers(0, 2**32), st.sampled_from([FIVE, HOUR]))
def test_the_cache_model_reads_what_the_fast_account_says_whatever_is_cut(
    seed: int, rates: CacheRates
) -> None:
    chance = Random(seed)
    whole = recording(segment([busy_round(chance) for _ in range(chance.randint(1, 20))]))
    mirror, reads = Mirror(made=whole, rates=rates), list[int]()

    def follow(sent: PlayedRequest) -> None:
        mirror.take(sent)
        reads.append(sent.read_tokens)

    def clear_any(facts: ClearingFacts, shelf: ClearableResults, *_: object) -> ClearingPlan | None:
        stale = shelf.find_stale(0, facts.round)[::-1] if chance.random() < 0.4 else []
        gone = [item for item in stale if chance.random() < 0.3]
        saved = sum(item.result.saved_tokens for item in gone)
        return (
            ClearingPlan(
                ids=tuple(item.result.id for item in gone),
                by="test",
                reason="",
                saved_tokens=saved,
                rewrite_tokens=0,
            )
            if gone
            else None
        )

    with pytest.MonkeyPatch.context() as patch:
        # How far a marker looks back is not what is compared here.
        patch.setattr("sevenfold.core.cache.prompt_cache.LOOKBACK_BLOCKS", 1_000)
        patch.setattr("sevenfold.replay.policies.counterfactual.choose_clearing", clear_any)
        play_recording(whole, CLEARING_POLICIES["keep"], rates, follow)
    assert mirror.reads == reads
