"""What holds for any sequence of requests; a naive cache, written apart, agrees on every one of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise, takewhile
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from sevenfold.core.cache.prompt_cache import (
    DEFAULT_CACHE_CHOICES,
    CacheChoices,
    CacheScope,
    PromptBill,
    PromptCache,
    RenderedPrompt,
    find_first_difference,
    render_prompt,
)
from sevenfold.core.json import JsonObject
from sevenfold.core.prices import CATALOG
from tests.core.cache.naive_cache import FIVE, HOUR, Answer, NaiveCache, Piece
from tests.core.cache_cases import LONG, SHORT, START, Wire, ask, request, result, text
from tests.examples import up_to

MODELS = ("claude-opus-5", "claude-opus-5-5")
SCOPES = (CacheScope("here"), CacheScope("there"))
LIVES = {FIVE: SHORT, HOUR: LONG}

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Sent:
    """One request of a random sequence."""

    pieces: tuple[Piece, ...]
    scope: CacheScope
    model: str
    wait: timedelta
    delay: timedelta | None
    """From its start until its answer begins; None if it never does."""


def wire(piece: Piece) -> Wire:
    match piece.kind:
        case "tool_use":
            block = ask(piece.name)
        case "tool_result":
            block = result(piece.name)
        case _:
            block = text(piece.name)
    return block if piece.life is None else {**block, "cache_control": LIVES[piece.life]}


def body(sent: Sent) -> JsonObject:
    """One message a block, so that roles alternate as the kinds do."""
    messages = [
        {"role": "assistant" if piece.kind == "tool_use" else "user", "content": [wire(piece)]}
        for piece in sent.pieces
    ]
    return request(*messages, model=sent.model)


def prompt(
    sent: Sent, choices: CacheChoices = DEFAULT_CACHE_CHOICES, after: RenderedPrompt | None = None
) -> RenderedPrompt:
    """Rendered with each piece's own size, which its name carries."""
    sizes = {piece.name: piece.tokens for piece in sent.pieces}

    def size(level: str, block: JsonObject) -> int:
        name = str(block.get("text") or block.get("id") or block.get("tool_use_id"))
        return sizes[name.removeprefix("use_")]

    return render_prompt(body(sent), size, choices=choices, after=after)


def marked(pieces: list[Piece], places: list[int], hours: int) -> tuple[Piece, ...]:
    """With markers at these places, the first few for an hour: the only order that is allowed."""
    chosen = sorted({place % len(pieces) for place in places})[:4]
    lives = {index: HOUR if order < hours else FIVE for order, index in enumerate(chosen)}
    return tuple(replace(piece, life=lives.get(index)) for index, piece in enumerate(pieces))


def mostly(usual: T, *others: T) -> st.SearchStrategy[T]:
    """The usual three times out of four: what is rare everywhere at once is never met."""
    return st.sampled_from([usual] * 3 * len(others) + list(others))


minutes = st.integers(0, 70).map(lambda count: timedelta(minutes=count))


@st.composite
def conversations(draw: st.DrawFn) -> list[Piece]:
    """Long enough to fall out of a look-back, with runs of calls and results in it."""
    runs = draw(
        st.lists(
            st.tuples(st.sampled_from(["text", "tool_use", "tool_result"]), st.integers(1, 4)),
            min_size=15,
            max_size=40,
        )
    )
    kinds = [kind for kind, length in runs for _ in range(length)]
    size = draw(st.integers(10, 400))
    return [Piece(f"{n}", kind, size + n % 7) for n, kind in enumerate(kinds)]


@st.composite
def sequences(draw: st.DrawFn) -> list[Sent]:
    """Requests over one conversation: more of it or less, sometimes with an earlier block changed."""
    whole = draw(conversations())
    sent: list[Sent] = []
    length = draw(st.integers(1, len(whole)))
    for number in range(draw(st.integers(3, 8))):
        length = min(len(whole), max(1, length + draw(st.integers(-5, 25))))
        pieces = whole[:length]
        if draw(mostly(False, True)):
            at = draw(st.integers(0, length - 1))
            pieces = [*pieces[:at], replace(pieces[at], name=f"{at}.{number}"), *pieces[at + 1 :]]
        places = draw(st.lists(st.integers(0, length - 1), max_size=3))
        sent.append(
            Sent(
                pieces=marked(pieces, [*places, length - 1], draw(mostly(0, 1, 2, 4))),
                scope=draw(mostly(*SCOPES)),
                model=draw(mostly(*MODELS)),
                wait=draw(st.one_of(st.just(timedelta(minutes=1)), minutes)),
                delay=draw(st.one_of(st.just(timedelta()), st.just(timedelta()), st.none(), minutes)),
            )
        )
    return sent


choices = st.builds(
    CacheChoices,
    collapses_runs=st.booleans(),
    hit_needs_ttl=st.booleans(),
    refresh=st.sampled_from(["hit", "found", "prefix"]),
    writes_below_hit=st.booleans(),
    gates_each_marker=st.booleans(),
)


@dataclass(frozen=True)
class Pending:
    at: datetime
    bill: PromptBill
    answer: Answer


@dataclass(frozen=True)
class Outcome:
    """A request, what it was billed, and what the naive cache says of it."""

    sent: Sent
    prompt: RenderedPrompt
    bill: PromptBill
    answer: Answer


def run(sequence: list[Sent], choices: CacheChoices = DEFAULT_CACHE_CHOICES) -> list[Outcome]:
    """All requests in the order of time: an answer that begins later is held back until then."""
    cache, naive = PromptCache(choices), NaiveCache(choices, minimum=512)
    now, waiting, outcomes = START, list[Pending](), list[Outcome]()
    for sent in sequence:
        now += sent.wait
        for due in sorted((item for item in waiting if item.at <= now), key=lambda item: item.at):
            cache.begin_response(due.bill, due.at)
            naive.begin(due.answer, due.at)
        waiting = [item for item in waiting if item.at > now]
        shown = prompt(sent, choices)
        bill = cache.look_up(sent.scope, CATALOG.find(sent.model), shown.parts, now)
        answer = naive.ask((sent.scope, sent.model), list(sent.pieces), now)
        if sent.delay is not None:
            waiting.append(Pending(now + sent.delay, bill, answer))
        outcomes.append(Outcome(sent, shown, bill, answer))
    return outcomes


@settings(max_examples=up_to(60))
@given(sequences(), choices)
def test_a_naive_cache_agrees_on_every_bill_under_every_choice(
    sequence: list[Sent], chosen: CacheChoices
) -> None:
    for outcome in run(sequence, chosen):
        bill, answer = outcome.bill, outcome.answer
        ours = (bill.read, bill.written_1h, bill.written_5m, bill.fresh)
        assert ours == (answer.read, answer.written_1h, answer.written_5m, answer.fresh)
        assert len(bill.writes) == len(answer.writes)


@settings(max_examples=up_to(30))
@given(sequences(), choices)
def test_what_is_read_written_and_fresh_is_the_whole_prompt(
    sequence: list[Sent], chosen: CacheChoices
) -> None:
    for outcome in run(sequence, chosen):
        bill = outcome.bill
        assert bill.total == outcome.prompt.tokens
        assert min(bill.read, bill.written_1h, bill.written_5m, bill.fresh) >= 0


@settings(max_examples=up_to(30))
@given(sequences(), choices)
def test_nothing_is_read_that_nobody_wrote(sequence: list[Sent], chosen: CacheChoices) -> None:
    written: set[tuple[CacheScope, str, str]] = set()
    longest: dict[tuple[CacheScope, str], int] = {}
    for outcome in run(sequence, chosen):
        owner = (outcome.sent.scope, outcome.sent.model)
        if outcome.bill.hit is not None:
            assert (*owner, outcome.prompt.parts[outcome.bill.hit].digest) in written
        assert outcome.bill.read <= longest.get(owner, 0)
        written |= {(*owner, part.digest) for part in outcome.prompt.parts if part.ttl is not None}
        longest[owner] = max(longest.get(owner, 0), outcome.prompt.tokens)


@settings(max_examples=up_to(30))
@given(sequences(), choices, st.integers(0, 70), st.integers(0, 70))
def test_waiting_longer_never_reads_more(
    sequence: list[Sent], chosen: CacheChoices, wait: int, more: int
) -> None:
    # Answers begin at once here: one that begins late is something to wait for.
    prompt_ones = [replace(sent, delay=sent.delay and timedelta()) for sent in sequence]

    def last_read(minutes: int) -> int:
        last = replace(prompt_ones[-1], wait=timedelta(minutes=minutes))
        return run([*prompt_ones[:-1], last], chosen)[-1].bill.read

    assert last_read(wait) >= last_read(wait + more)


@settings(max_examples=up_to(30))
@given(conversations(), st.lists(st.integers(0, 59), max_size=4), st.integers(0, 4))
def test_markers_change_no_hash(pieces: list[Piece], places: list[int], hours: int) -> None:
    plain = Sent(pieces=tuple(pieces), scope=SCOPES[0], model=MODELS[0], wait=timedelta(), delay=None)
    with_markers = replace(plain, pieces=marked(pieces, places, hours))
    bare, shown = prompt(plain), prompt(with_markers)
    assert [part.digest for part in bare.parts] == [part.digest for part in shown.parts]
    assert find_first_difference(bare, shown) is None


@settings(max_examples=up_to(30))
@given(conversations(), st.integers(0, 60))
def test_appending_changes_no_earlier_hash(pieces: list[Piece], length: int) -> None:
    whole = prompt(Sent(pieces=tuple(pieces), scope=SCOPES[0], model=MODELS[0], wait=timedelta(), delay=None))
    part = prompt(
        Sent(pieces=tuple(pieces[:length]), scope=SCOPES[0], model=MODELS[0], wait=timedelta(), delay=None)
    )
    assert whole.parts[: len(part.parts)] == part.parts


@settings(max_examples=up_to(30))
@given(sequences())
def test_rendering_after_an_earlier_prompt_gives_the_same_as_rendering_anew(sequence: list[Sent]) -> None:
    earlier: RenderedPrompt | None = None
    for sent in sequence:
        continued = prompt(sent, after=earlier)
        assert continued == prompt(sent)
        earlier = continued


@settings(max_examples=up_to(30))
@given(sequences())
def test_the_first_difference_is_where_the_pieces_first_differ(sequence: list[Sent]) -> None:
    for before, after in pairwise(replace(sent, model=MODELS[0]) for sent in sequence):
        names = [[(piece.name, piece.kind) for piece in sent.pieces] for sent in (before, after)]
        common = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(*names, strict=False))))
        difference = find_first_difference(prompt(before), prompt(after))
        if common == min(len(before.pieces), len(after.pieces)):
            assert difference is None
        else:
            assert difference is not None
            assert (difference.index, difference.cause) == (common, "message")
            assert difference.missed_tokens == sum(piece.tokens for piece in before.pieces[common:])
