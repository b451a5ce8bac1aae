"""The ledger: what each request cost, and where it left the one before it."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from sevenfold.core.errors import FileMissing, SimulatorError, StoreError
from sevenfold.core.events import ModelUnknown, PriceUnknown
from sevenfold.core.json import JsonObject, read_object
from sevenfold.core.prices import CATALOG, ModelSettings, compute_cost
from sevenfold.testing import Simulator, StatusFault, script
from tests.simulator.asking import MARK, MODEL, PROSE, Asker, assistant, text, tool, user

SAID: list[object] = [user(text(PROSE, cache_control=MARK)), assistant("Yes."), "And?"]


def test_an_entry_says_what_was_read_written_and_paid(ask: Asker) -> None:
    ask.create(*SAID)
    written = ask.sim.last
    ask.create(*SAID)
    read = ask.sim.last
    assert (written.number, read.number, read.previous) == (1, 2, 1)
    assert written.usage.written_5m == read.usage.read > 500
    assert read.cost == compute_cost(read.usage, CATALOG.find(MODEL))
    assert read.cost is not None
    assert read.cost_without_caching is not None
    assert read.cost.total < read.cost_without_caching.total


@pytest.mark.parametrize(
    ("said", "fields", "cause", "path"),
    [
        ([*SAID, assistant("So."), "More?"], {}, None, None),
        (SAID[:1], {}, None, None),
        (
            [user(text(PROSE, cache_control=MARK)), assistant("No."), "And?"],
            {},
            "message",
            "messages.1.content.0",
        ),
        (SAID, {"system": "Be long."}, "system", "system.0"),
        (SAID, {"tools": [tool("look")]}, "tools", "system.0"),
        (SAID, {"tools": [tool("walk"), tool("look")]}, "tools", "tools.0"),
        (SAID, {"model": "claude-opus-4-8"}, "model", "model"),
        (SAID, {"tool_choice": {"type": "none"}}, "params", "tool_choice"),
        (SAID, {"thinking": {"type": "adaptive"}}, "params", "thinking"),
    ],
    ids=[
        "grown",
        "shortened",
        "message",
        "system",
        "tool gone",
        "tools turned",
        "model",
        "choice",
        "thinking",
    ],
)
def test_the_first_block_that_differs_is_named_with_its_cause(
    ask: Asker, said: list[object], fields: dict[str, object], cause: str | None, path: str | None
) -> None:
    base: dict[str, object] = {"system": "Be brief.", "tools": [tool("look"), tool("walk")]}
    ask.create(*SAID, **base)
    ask.create(*said, **{**base, **fields})
    found = ask.sim.last.difference
    assert (found.cause if found else None, found.path if found else None) == (cause, path)
    if found is not None:
        assert found.missed_tokens > 0


def test_conversations_are_told_apart(ask: Asker) -> None:
    ask.create("Tell me of birds.")
    ask.create("Tell me of fish.")
    ask.create("Tell me of birds.", assistant("They fly."), "All of them?")
    ask.create("Tell me of fish.", assistant("They swim."), "All of them?")
    ask.create("Tell me of fish.", key="another")
    assert [entry.previous for entry in ask.sim.ledger.entries] == [None, None, 1, 2, None]
    assert [entry.difference for entry in ask.sim.ledger.entries] == [None] * 5


def test_strangers_that_share_an_opening_text_stay_apart(ask: Asker) -> None:
    ask.create(user(text(PROSE), text("Tell me of birds.")))
    ask.create(user(text(PROSE), text("Tell me of fish.")))
    assert [entry.previous for entry in ask.sim.ledger.entries] == [None, None]


@pytest.mark.parametrize(
    "name", ["x-claude-code-session-id", "x-session-id", "agent-session-id", "session-id"]
)
def test_a_session_in_the_headers_is_a_conversation(ask: Asker, name: str) -> None:
    tools: dict[str, object] = {"tools": [tool("look")]}
    ask.create("Tell me of birds.", headers={name: "a"}, **tools)
    ask.create("Tell me of birds.", headers={name: "b"}, **tools)
    ask.create("Tell me of birds.", headers={name: "a"})
    ask.create("Tell me of birds.", headers={name: "a", "x-claude-code-agent-id": "helper"}, **tools)
    ask.create("Tell me of birds.", **tools)
    ask.create("In short: birds.", headers={name: "a"}, **tools)
    assert [entry.previous for entry in ask.sim.ledger.entries] == [None, None, None, None, None, 1]


def test_a_conversation_is_known_again_after_its_first_message_changed(ask: Asker) -> None:
    ask.create("Tell me of birds.", assistant("They fly."), "All of them?")
    ask.create("Tell me of fish.", assistant("They fly."), "All of them?")
    found = ask.sim.last.difference
    assert found is not None
    assert (ask.sim.last.previous, found.path) == (1, "messages.0.content.0")


def test_a_pause_that_was_too_long_is_told(ask: Asker) -> None:
    ask.create(*SAID)
    ask.sim.advance(timedelta(minutes=5, seconds=1))
    ask.create(*SAID)
    assert (ask.sim.last.usage.read, ask.sim.last.expired) == (0, "messages.0.content.0")
    ask.sim.advance(timedelta(minutes=5))
    ask.create(*SAID)
    assert ask.sim.last.usage.read > 0
    assert ask.sim.last.expired is None


def test_every_request_is_in_the_ledger_refused_ones_too(ask: Asker) -> None:
    ask.create("Hi")
    ask.count("Hi")
    ask.create("Hi", model="nobody")
    ask.sim.fail(StatusFault(status=529))
    ask.create("Hi")
    entries = ask.sim.ledger.entries
    assert [entry.status for entry in entries] == [200, 200, 404, 529]
    assert [entry.number for entry in entries] == [1, 2, 3, 4]
    assert [entry.error for entry in entries][2:] == ["model: nobody", "Simulated fault"]
    assert entries[3].fault == "StatusFault"
    assert [entry.model for entry in entries] == [MODEL, MODEL, "nobody", MODEL]


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions"])
def test_a_refused_request_has_its_model_in_the_ledger_where_it_names_one(ask: Asker, path: str) -> None:
    headers = {"x-api-key": "k", "authorization": "Bearer k", "anthropic-version": "2026-10-21"}
    whole = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    ask.sim.fail(StatusFault(status=529))
    assert ask.post(path, whole, headers).status == 529
    assert ask.post(path, whole, {}).status == 401
    assert ask.post(path, {"model": 7}, headers).status == 400
    assert ask.send("POST", path, headers, b"{bad").status == 400
    lines = [entry.to_json() for entry in ask.sim.ledger.entries]
    assert [line.get("model") for line in lines] == [MODEL, MODEL, None, None]
    assert "model" not in lines[2]
    assert ["workspace" in line for line in lines] == [True, False, True, True]


def test_the_ledger_can_be_asked_for_over_http(ask: Asker) -> None:
    ask.create(*SAID)
    ask.create(*SAID)
    ask.create("Hi", model="nobody")
    answer = ask.send("GET", "/_sevenfold/ledger", {})
    total = ask.sim.ledger.total_cost()
    assert total is not None
    assert [answer.at("entries", at, "number") for at in range(3)] == [1, 2, 3]
    assert [answer.at("totals", key) for key in ("requests", "answered", "refused")] == [3, 2, 1]
    assert Decimal(str(answer.at("totals", "dollars", "total"))) == total.total
    assert answer.at("totals", "read") == ask.sim.ledger.entries[1].usage.read
    later = ask.send("GET", "/_sevenfold/ledger?since=2", {})
    assert [later.at("entries", 0, "number"), later.at("entries", 1)] == [3, None]
    assert ask.send("GET", "/_sevenfold/ledger?since=x", {}).at("entries", 0, "number") == 1


def test_a_compaction_is_in_the_ledger_with_its_cost(ask: Asker) -> None:
    ask.create(PROSE, betas=["compact-2026-09-04"], compaction={"type": "summarize"})
    line = ask.sim.last.to_json()
    beside = line["beside"]
    assert isinstance(beside, tuple)
    assert isinstance(beside[0], JsonObject)
    assert beside[0]["kind"] == "compaction"
    assert ask.sim.last.cost is not None
    assert ask.sim.last.cost.fresh > 0


def test_the_totals_have_the_tokens_of_everything_that_is_in_their_dollars(ask: Asker) -> None:
    for said in (PROSE, PROSE * 2):
        ask.create(said, betas=["compact-2026-09-04"], compaction={"type": "summarize"})
    ask.create("Hi")
    answer = ask.send("GET", "/_sevenfold/ledger", {})
    told = answer.at("totals", "beside", 0)
    assert isinstance(told, JsonObject)
    assert told["kind"] == "compaction"
    runs = [run for entry in ask.sim.ledger.entries for run in entry.usage.untotaled]
    for name in ("read", "written_5m", "written_1h", "fresh", "output"):
        assert told[name] == sum(getattr(run, name) for run in runs)
    assert answer.at("totals", "beside", 1) is None
    prices = CATALOG.find(MODEL).prices_at(None)
    assert prices is not None
    fresh, output = (int(str(answer.at("totals", key))) + int(str(told[key])) for key in ("fresh", "output"))
    each = prices.for_prompt(0)
    paid = (fresh * each.fresh + output * each.output) / 1_000_000
    assert Decimal(str(answer.at("totals", "dollars", "total"))) == paid


def test_each_request_is_a_line_of_the_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    for run in (1, 2):
        with Simulator(ledger_path=path) as sim:
            client = sim.client()
            for number in (1, 2):
                client.messages.create(
                    model=MODEL, max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
                )
                lines = [read_object(line) for line in path.read_bytes().splitlines()]
                assert lines[-1] == sim.last.to_json()
                assert len(lines) == 2 * (run - 1) + number


def test_a_ledger_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    simulator = Simulator(ledger_path=tmp_path / "nowhere" / "ledger.jsonl")
    with pytest.raises(FileMissing):
        simulator.start()
    folder = Simulator(ledger_path=tmp_path)
    with pytest.raises(StoreError):
        folder.start()


def test_a_script_can_set_what_is_billed(ask: Asker) -> None:
    from sevenfold.testing import Reply, say

    usage = {
        "input_tokens": 7,
        "cache_read_input_tokens": 100,
        "ephemeral_1h_input_tokens": 50,
        "output_tokens": 9,
    }
    ask.sim.reset(script(Reply(say("Yes.").blocks, usage=usage)))
    told = ask.create("Hi").usage
    assert (told.fresh, told.read, told.written_1h, told.written_5m, told.output) == (7, 100, 50, 0, 9)
    assert ask.sim.last.usage == told


@pytest.mark.parametrize(
    ("usage", "output", "thinking"),
    [
        ({"output_tokens": 2}, 2, 2),
        ({"output_tokens": 0}, 0, 0),
        ({"output_tokens": 90, "thinking_tokens": 80}, 90, 80),
    ],
)
def test_thinking_is_never_billed_as_more_than_the_output(
    ask: Asker, usage: dict[str, int], output: int, thinking: int
) -> None:
    from sevenfold.testing import Reply, say

    ask.sim.reset(script(Reply(say("Yes.", think="It is so, for many reasons.").blocks, usage=usage)))
    told = ask.create("Hi", thinking={"type": "adaptive"}).usage
    assert (told.output, told.thinking) == (output, thinking)


@pytest.mark.parametrize(("fields", "times"), [({}, 1), ({"inference_geo": "us"}, Decimal("1.1"))])
def test_where_a_request_ran_is_in_its_price(ask: Asker, fields: dict[str, object], times: Decimal) -> None:
    ask.create("Hi")
    ask.create("Hi", **fields)
    plain, priced = (entry.cost for entry in ask.sim.ledger.entries)
    assert plain is not None
    assert priced is not None
    assert priced.total == times * plain.total


def test_a_long_prompt_is_repriced_where_the_model_does_so(ask: Asker) -> None:
    fields: dict[str, object] = {"model": "claude-haiku-5-5"}
    bills: list[Decimal] = []
    for count in (1, 2):
        ask.create(*[PROSE * 90] * count, **fields)
        cost = ask.sim.last.cost
        assert cost is not None
        bills.append(cost.fresh / ask.sim.last.usage.fresh)
    assert bills[1] == 5 * bills[0]


def test_an_empty_ledger_has_no_last_entry(sim: Simulator) -> None:
    with pytest.raises(SimulatorError, match="no request"):
        _ = sim.last
    totals = sim.ledger.to_json()["totals"]
    assert isinstance(totals, JsonObject)
    assert totals["requests"] == 0


def test_a_conversation_that_comes_back_to_a_model_goes_on_from_there(ask: Asker) -> None:
    other = "claude-opus-4-8"
    said: list[object] = list(SAID)
    for model in (MODEL, other, other, MODEL):
        ask.create(*said, model=model)
        said += [assistant("So."), "More?"]
    entries = ask.sim.ledger.entries
    assert [entry.previous for entry in entries] == [None, 1, 2, 1]
    assert [entry.difference and entry.difference.cause for entry in entries] == [None, "model", None, None]
    assert entries[3].usage.read > 0


def test_another_conversation_on_the_model_is_not_mistaken_for_this_one(ask: Asker) -> None:
    reminder = "Be brief."
    ask.create(user(reminder, "Tell me of fish."))
    said: list[object] = [user(reminder, "Tell me of birds."), *SAID[1:], assistant("So."), "More?"]
    ask.create(*said, model="claude-opus-4-8")
    ask.create(*said)
    assert (ask.sim.last.previous, ask.sim.last.difference and ask.sim.last.difference.cause) == (2, "model")


@pytest.mark.parametrize("fields", [{"model": "claude-haiku-4-5"}, {"system": "Be long."}])
def test_no_more_is_missed_than_was_paid_for(ask: Asker, fields: dict[str, object]) -> None:
    ask.create(*SAID, PROSE, PROSE, system="Be brief.")
    ask.create(*SAID[:1], "And?", **{"system": "Be brief.", **fields})
    entry = ask.sim.last
    assert entry.difference is not None
    assert 0 < entry.difference.missed_tokens <= entry.usage.prompt - entry.usage.read


def test_a_model_without_a_price_is_told(tmp_path: Path) -> None:
    catalog = CATALOG.with_overrides({"my-model": ModelSettings()})
    path = tmp_path / "ledger.jsonl"
    with Simulator(catalog=catalog, ledger_path=path) as sim:
        sim.client().messages.create(
            model="my-model", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
        )
        assert (sim.last.events, sim.last.cost) == ((PriceUnknown("my-model"),), None)
    told = read_object(path.read_bytes())["events"]
    assert told == (JsonObject({"event": "PriceUnknown", "model": "my-model"}),)


def test_a_model_that_nobody_knows_is_told(ask: Asker) -> None:
    assert ask.create("Hi", model="nobody").status == 404
    assert ask.sim.last.events == (ModelUnknown("nobody", 200_000),)
