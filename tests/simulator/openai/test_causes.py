"""Rows of the OpenAI-shaped endpoints: where a request leaves the one before it; and schemas of tools."""

from __future__ import annotations

from datetime import timedelta

import httpx2
import pytest

from sevenfold.core.json import JsonObject, freeze_object
from sevenfold.testing import Prompt, Simulator
from tests.simulator.asking import MODEL, PROSE

LONG = PROSE * 4
PARAMETERS: dict[str, object] = {"type": "object", "properties": {"at": {"type": "string"}}}


def chat(*said: str, system: str = "Brief.", tool: str = "look", model: str = "gpt-5.5") -> dict[str, object]:
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(said)]
    function = {"name": tool, "parameters": PARAMETERS}
    return {
        "model": model,
        "messages": [{"role": "system", "content": system}, *messages],
        "tools": [{"type": "function", "function": function}],
    }


def responses(
    *said: str, system: str = "Brief.", tool: str = "look", model: str = "gpt-5.5"
) -> dict[str, object]:
    roles = ("user", "assistant")
    items = [{"role": roles[at % 2], "content": text} for at, text in enumerate(said)]
    declared = {"type": "function", "name": tool, "parameters": PARAMETERS}
    return {"model": model, "input": items, "instructions": system, "tools": [declared]}


@pytest.fixture(params=["chat/completions", "responses"])
def path(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def post(sim: Simulator, http: httpx2.Client, path: str, *said: str, **fields: str) -> None:
    headers = {"authorization": "Bearer k"}
    body = chat(*said, **fields) if path.startswith("chat") else responses(*said, **fields)
    answer = http.post(f"{sim.url}/v1/{path}", json=body, headers=headers)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    ("said", "fields", "cause", "where"),
    [
        ((LONG, "Yes.", "And?", "So.", "More?"), {}, None, None),
        ((LONG, "No.", "And?"), {}, "message", "messages.1.content.0"),
        ((LONG, "Yes.", "And?"), {"system": "Long."}, "system", "system.0"),
        ((LONG, "Yes.", "And?"), {"tool": "walk"}, "tools", "tools.0"),
        ((LONG, "Yes.", "And?"), {"model": "gpt-5.6"}, "model", "model"),
    ],
    ids=["grown", "message", "system", "tools", "model"],
)
def test_a_row_says_where_a_request_leaves_the_one_before_it(
    sim: Simulator,
    http: httpx2.Client,
    path: str,
    said: tuple[str, ...],
    fields: dict[str, str],
    cause: str | None,
    where: str | None,
) -> None:
    post(sim, http, path, LONG, "Yes.", "And?")
    first = sim.last
    post(sim, http, path, *said, **fields)
    row = sim.last
    assert row.previous == first.number
    found = row.difference
    assert (found and found.cause, found and found.path) == (cause, where)
    if found is not None:
        assert 0 < found.missed_tokens <= row.usage.fresh


def test_a_row_says_that_a_shorter_pause_would_have_read_more(
    sim: Simulator, http: httpx2.Client, path: str
) -> None:
    post(sim, http, path, LONG)
    sim.advance(timedelta(minutes=29))
    post(sim, http, path, LONG)
    assert sim.last.usage.read > 0
    assert sim.last.expired is None
    sim.advance(timedelta(minutes=31))
    post(sim, http, path, LONG)
    assert sim.last.usage.read == 0
    assert sim.last.difference is None
    assert sim.last.expired == "messages.0.content.0"


def test_conversations_of_other_keys_and_endpoints_are_not_compared(
    sim: Simulator, http: httpx2.Client
) -> None:
    post(sim, http, "chat/completions", LONG)
    post(sim, http, "responses", LONG)
    assert sim.last.previous is None
    headers = {"authorization": "Bearer other"}
    http.post(f"{sim.url}/v1/chat/completions", json=chat(LONG), headers=headers)
    assert sim.last.previous is None


def test_a_brain_gets_the_schema_of_each_tool_from_every_endpoint(
    sim: Simulator, http: httpx2.Client
) -> None:
    asked: list[Prompt] = []

    def brain(prompt: Prompt) -> str:
        asked.append(prompt)
        return "Yes."

    sim.reset(brain)
    post(sim, http, "chat/completions", "Hi")
    post(sim, http, "responses", "Hi")
    messages = {
        "model": MODEL,
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Hi"}],
        "tools": [{"name": "look", "input_schema": PARAMETERS}],
    }
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    assert http.post(f"{sim.url}/v1/messages", json=messages, headers=headers).status_code == 200
    assert [prompt.tools for prompt in asked] == [("look",)] * 3
    assert [prompt.tool_schemas["look"] for prompt in asked] == [freeze_object(PARAMETERS)] * 3


def test_a_tool_in_a_namespace_has_its_schema_and_one_for_plain_text_has_none(
    sim: Simulator, http: httpx2.Client
) -> None:
    asked: list[Prompt] = []

    def brain(prompt: Prompt) -> str:
        asked.append(prompt)
        return "Yes."

    sim.reset(brain)
    inner = {"type": "function", "name": "find", "parameters": PARAMETERS}
    tools = [{"type": "namespace", "name": "docs", "tools": [inner]}, {"type": "custom", "name": "patch"}]
    body = {"model": "gpt-5.5", "input": "Hi", "tools": tools}
    http.post(f"{sim.url}/v1/responses", json=body, headers={"authorization": "Bearer k"})
    assert asked[0].tools == ("docs.find", "patch")
    assert dict(asked[0].tool_schemas) == {
        "docs.find": freeze_object(PARAMETERS),
        "patch": JsonObject({}),
    }
