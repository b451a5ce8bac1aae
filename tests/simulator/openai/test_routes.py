"""The OpenAI-shaped endpoints, as the official client and plain HTTP see them."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import openai
import pytest
from anthropic import Anthropic
from openai import OpenAI

from sevenfold.core.json import JsonObject, read_object
from sevenfold.core.messages import Text
from sevenfold.testing import Choices, Prompt, RateLimits, Reply, Simulator, StatusFault, StreamFault, say

MODEL = "gpt-5.6"
CALL = {"name": "f", "arguments": "{}"}
PROSE = "The quick brown fox jumps over the lazy dog. " * 120


@pytest.fixture
def sdk(sim: Simulator) -> Iterator[OpenAI]:
    http = openai.DefaultHttpxClient(trust_env=False)
    with OpenAI(api_key="k", base_url=f"{sim.url}/v1", max_retries=0, http_client=http) as client:
        yield client


def post(sim: Simulator, http: httpx2.Client, path: str, body: object, key: str = "k") -> httpx2.Response:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    return http.post(f"{sim.url}{path}", json=body, headers=headers)


def error_of(response: httpx2.Response) -> JsonObject:
    error = read_object(response.content)["error"]
    assert isinstance(error, JsonObject)
    return error


def test_the_official_client_chats(sim: Simulator, sdk: OpenAI) -> None:
    sim.reset(lambda prompt: say(f"You said {prompt.last_text}", calls={"look": {"at": "it"}}))
    done = sdk.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Hi"}])
    choice = done.choices[0]
    assert choice.message.content == "You said Hi"
    assert choice.finish_reason == "tool_calls"
    assert choice.message.tool_calls is not None
    assert choice.message.tool_calls[0].id.startswith("call_")
    assert done.usage is not None
    assert done.usage.prompt_tokens == sim.last.usage.prompt
    assert done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens


def test_the_official_client_streams_a_chat(sim: Simulator, sdk: OpenAI) -> None:
    sim.reset(lambda _: PROSE)
    chunks = list(
        sdk.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": "Hi"}],
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == PROSE
    assert [chunk.usage for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1].usage is not None
    assert chunks[-1].choices == []


def test_a_stream_tells_its_usage_only_if_asked(sim: Simulator, sdk: OpenAI) -> None:
    chunks = list(
        sdk.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Hi"}], stream=True)
    )
    assert [chunk for chunk in chunks if chunk.usage is not None] == []
    assert sim.last.usage.output > 0


def test_the_official_client_asks_for_responses(sim: Simulator, sdk: OpenAI) -> None:
    sim.reset(lambda prompt: say(f"{prompt.system} {prompt.last_text}", calls={"look": {"at": "it"}}))
    done = sdk.responses.create(model=MODEL, input="Hi", instructions="Brief:")
    assert done.output_text == "Brief: Hi"
    assert [item.type for item in done.output] == ["message", "function_call"]
    assert done.usage is not None
    assert done.usage.input_tokens == sim.last.usage.prompt


def test_a_tool_in_a_namespace_is_called_in_it(sim: Simulator, http: httpx2.Client) -> None:
    asked: list[Prompt] = []

    def reply(prompt: Prompt) -> Reply:
        asked.append(prompt)
        return say("Done.") if prompt.results else say(calls={"mcp__own.look": {"at": "it"}})

    sim.reset(reply)
    look = {"type": "function", "name": "look", "parameters": {"type": "object"}}
    tools = [look, {"type": "namespace", "name": "mcp__own", "tools": [look]}]
    first = {"role": "user", "content": "Hi"}
    body = {"model": MODEL, "input": [first], "tools": tools}
    (item,) = post(sim, http, "/v1/responses", body).json()["output"]
    assert (item["namespace"], item["name"]) == ("mcp__own", "look")
    output = {"type": "function_call_output", "call_id": item["call_id"], "output": "seen"}
    assert post(sim, http, "/v1/responses", {**body, "input": [first, item, output]}).status_code == 200
    assert asked[-1].tools == ("look", "mcp__own.look")


def test_the_official_client_streams_responses(sim: Simulator, sdk: OpenAI) -> None:
    sim.reset(lambda _: say(PROSE, calls={"look": {"at": "it"}}))
    with sdk.responses.stream(model=MODEL, input="Hi") as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert final.output_text == PROSE
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"


def test_what_was_asked_before_is_read_from_the_cache(sim: Simulator, sdk: OpenAI) -> None:
    sdk.responses.create(model=MODEL, input=PROSE)
    done = sdk.responses.create(model=MODEL, input=PROSE)
    assert done.usage is not None
    cached = done.usage.input_tokens_details.cached_tokens
    assert cached == done.usage.input_tokens // 128 * 128 >= 1024
    other = sdk.with_options(api_key="other").responses.create(model=MODEL, input=PROSE)
    assert other.usage is not None
    assert other.usage.input_tokens_details.cached_tokens == 0


def test_a_brain_sees_the_same_conversation_through_both(sim: Simulator, sdk: OpenAI) -> None:
    seen: list[Prompt] = []
    sim.reset(lambda prompt: (seen.append(prompt), "Fine.")[1])
    call = {"name": "look", "arguments": "{not json"}
    sdk.chat.completions.create(
        model=MODEL,
        messages=[
            {"role": "developer", "content": "Brief."},
            {"role": "user", "content": [{"type": "text", "text": "Go"}]},
            {
                "role": "assistant",
                "content": "Yes",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{not json"}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "red"},
            {"role": "user", "content": "And?"},
        ],
    )
    sdk.responses.create(
        model=MODEL,
        instructions="Brief.",
        input=[
            {"role": "user", "content": "Go"},
            {"role": "assistant", "content": "Yes"},
            {"type": "function_call", "call_id": "c1", "name": call["name"], "arguments": call["arguments"]},
            {"type": "function_call_output", "call_id": "c1", "output": "red"},
            {"role": "user", "content": "And?"},
        ],
    )
    first, second = seen
    assert first.system == second.system == "Brief."
    blocks = [[block for message in prompt.messages for block in message.blocks] for prompt in seen]
    assert blocks[0] == blocks[1]
    assert blocks[0][0] == Text("Go")


def test_models_are_listed_in_the_shape_that_the_client_expects(
    sim: Simulator, sdk: OpenAI, client: Anthropic
) -> None:
    names = [model.id for model in sdk.models.list()]
    assert "claude-opus-5-5" in names
    assert sdk.models.retrieve("claude-opus-5-5").owned_by == "sevenfold"
    assert client.models.retrieve("claude-opus-5-5").type == "model"
    with pytest.raises(openai.NotFoundError):
        sdk.models.retrieve("nobody")


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        (None, "expected an array, but got null"),
        ([7], "expected an object, but got a number"),
        ([{"role": "wizard", "content": "x"}], "'wizard'"),
        ([{"role": "user", "content": True}], "got a boolean"),
        ([{"role": "user", "content": [{"type": "smell"}]}], "'smell'"),
        ([{"role": "user"}], "got null"),
        ([{"role": "assistant"}], "messages[0].content"),
        (
            [{"role": "tool", "tool_call_id": "c", "content": "x"}],
            "must be a response to a preceeding message",
        ),
        (
            [
                {
                    "role": "assistant",
                    "tool_calls": [{"id": "c9", "function": {"name": "f", "arguments": "{}"}}],
                },
                {"role": "user", "content": "x"},
            ],
            "c9",
        ),
    ],
)
def test_a_chat_that_makes_no_sense_is_refused(
    sim: Simulator, http: httpx2.Client, messages: object, told: str
) -> None:
    response = post(sim, http, "/v1/chat/completions", {"model": MODEL, "messages": messages})
    assert response.status_code == 400
    error = error_of(response)
    assert error["type"] == "invalid_request_error"
    assert told in str(error["message"])
    assert sim.last.status == 400


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}, "No tool call found"),
        (
            {"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]},
            "No tool output",
        ),
        ({"input": [{"type": "reasoning", "encrypted_content": "!"}]}, "could not be verified"),
        ({"input": [{"type": "dream"}]}, "'dream'"),
        ({"input": [{"role": "wizard", "content": "x"}]}, "'wizard'"),
        ({"input": "x", "previous_response_id": "resp_1"}, "nothing is stored here"),
        ({"input": "x", "max_output_tokens": 0}, "at least 1"),
    ],
)
def test_a_response_request_that_makes_no_sense_is_refused(
    sim: Simulator, http: httpx2.Client, fields: dict[str, object], told: str
) -> None:
    response = post(sim, http, "/v1/responses", {"model": MODEL, **fields})
    assert response.status_code == 400
    assert told in str(error_of(response)["message"])


def test_a_key_is_wanted_and_a_body_must_be_json(sim: Simulator, http: httpx2.Client) -> None:
    assert post(sim, http, "/v1/responses", {}, key="").status_code == 401
    response = http.post(f"{sim.url}/v1/responses", content=b"{", headers={"authorization": "Bearer k"})
    assert response.status_code == 400
    assert "could not parse the JSON body" in str(error_of(response)["message"])


def test_faults_limits_and_broken_brains_answer_in_openais_shape(sim: Simulator, http: httpx2.Client) -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "x"}]}
    sim.fail(StatusFault(status=503, message="Down"))
    sim.fail(StreamFault(status=500, message="Broken"))
    assert error_of(post(sim, http, "/v1/chat/completions", body))["type"] == "server_error"
    assert error_of(post(sim, http, "/v1/chat/completions", body))["message"] == "Broken"
    sim.reset(choices=Choices(limits=RateLimits(requests=1)))
    assert post(sim, http, "/v1/chat/completions", body).status_code == 200
    limited = post(sim, http, "/v1/chat/completions", body)
    assert limited.status_code == 429
    assert "retry-after" in limited.headers

    def brain(_: Prompt) -> str:
        raise ZeroDivisionError("brain")

    sim.reset(brain)
    response = post(sim, http, "/v1/chat/completions", body)
    assert response.status_code == 500
    assert response.headers["x-should-retry"] == "false"
    with pytest.raises(ZeroDivisionError):
        sim.check()
    sim.reset()


def test_the_ledger_says_which_endpoint_and_that_a_model_is_unknown(sim: Simulator, sdk: OpenAI) -> None:
    sdk.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "x"}])
    assert sim.last.endpoint == "chat"
    assert [type(event).__name__ for event in sim.last.events] == ["ModelUnknown"]
    sdk.responses.create(model="claude-opus-5-5", input="x")
    assert sim.last.endpoint == "responses"
    assert sim.last.cost is not None
