"""Clients of the Anthropic SDK for Bedrock and Vertex: the same layers, another form of the request. Clients
that are too old are refused."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from anthropic.lib.bedrock import AnthropicBedrock
from anthropic.lib.vertex import AnthropicVertex

from sevenfold import attach
from sevenfold.core.errors import InputError
from sevenfold.core.events import ResultSpilled
from sevenfold.integrations.reply_stream import StreamedReplyReader
from sevenfold.providers.anthropic.wire import MessagesAssembler
from sevenfold.testing import Prompt, Reply, Simulator, say
from tests.session.talk import Listener

MODEL = "claude-opus-5"


@pytest.fixture
def sim() -> Generator[Simulator]:
    with Simulator() as running:
        yield running


@dataclass
class Gateway(httpx2.BaseTransport):
    """Takes requests in a platform's form and answers with the simulator, as the platform would."""

    sim: Simulator
    paths: list[str] = field(default_factory=list[str])
    http: httpx2.Client = field(default_factory=lambda: httpx2.Client(trust_env=False))

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path
        self.paths.append(path)
        body: dict[str, Any] = json.loads(request.read())
        assert body.pop("anthropic_version")
        streams = body.pop("stream", False) or path.endswith("stream")
        body |= {"model": MODEL, "stream": bool(streams)}
        body.pop("anthropic_beta", None)
        headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
        answer = self.http.post(f"{self.sim.url}/v1/messages", json=body, headers=headers)
        return httpx2.Response(answer.status_code, content=answer.content, headers=answer.headers)


def bedrock(gateway: Gateway) -> AnthropicBedrock:
    http = httpx2.Client(transport=gateway)
    return AnthropicBedrock(api_key="k", aws_region="r", base_url="http://127.0.0.1", http_client=http)


def vertex(gateway: Gateway) -> AnthropicVertex:
    http = httpx2.Client(transport=gateway)
    return AnthropicVertex(
        region="r", project_id="p", access_token="t", base_url="http://127.0.0.1", http_client=http
    )


@pytest.mark.parametrize(("make", "path"), [(bedrock, "/model/"), (vertex, "/projects/p/")])
def test_a_platforms_client_goes_through_the_layers(
    sim: Simulator, tmp_path: Path, make: Callable[[Gateway], Any], path: str
) -> None:
    def brain(prompt: Prompt) -> Reply:
        return say("done") if prompt.results else say(calls={"Bash": {"command": "ls"}})

    sim.reset(brain)
    gateway, listener = Gateway(sim), Listener()
    tool = {"name": "Bash", "input_schema": {"type": "object"}}
    messages: list[Any] = [{"role": "user", "content": "hello " * 800}]
    attached: Any = attach(make(gateway), project=tmp_path, environ={"HOME": str(tmp_path)}, emit=listener)
    with attached as client:
        assert type(client) in (AnthropicBedrock, AnthropicVertex)
        answer = client.messages.create(model=MODEL, max_tokens=500, messages=messages, tools=[tool])
        use = answer.content[0]
        result = {"type": "tool_result", "tool_use_id": use.id, "content": "line\n" * 50_000}
        messages += [
            {"role": "assistant", "content": answer.content},
            {"role": "user", "content": [result]},
        ]
        client.messages.create(model=MODEL, max_tokens=500, messages=messages, tools=[tool])
        (session,) = attached.sessions
        assert session.spent[0].usage.requests == 2
    gateway.http.close()
    assert [type(event) for event in listener.events] == [ResultSpilled]
    assert sim.last.usage.read > 0
    assert sim.last.usage.prompt < 3_000
    assert all(one.startswith(path) for one in gateway.paths)


def test_a_stream_of_vertex_is_recorded(sim: Simulator) -> None:
    gateway, listener = Gateway(sim), Listener()
    attached: Any = attach(vertex(gateway), project=None, emit=listener)
    with attached as client:
        with client.messages.stream(
            model=MODEL, max_tokens=500, messages=[{"role": "user", "content": "hello"}]
        ) as stream:
            assert stream.get_final_text()
        assert attached.sessions[0].spent[0].usage.requests == 1
    gateway.http.close()
    assert listener.events == []


def frames(events: list[dict[str, Any]]) -> Iterator[bytes]:
    """Events as Bedrock frames them."""
    for event in events:
        payload = json.dumps({"bytes": base64.b64encode(json.dumps(event).encode()).decode()}).encode()
        headers = b"\x0b:event-type\x07\x00\x05chunk"
        size = 16 + len(headers) + len(payload)
        yield size.to_bytes(4) + len(headers).to_bytes(4) + b"CRC!" + headers + payload + b"CRC!"


@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_frames_of_bedrock_are_read_however_they_are_cut(step: int) -> None:
    usage = {"input_tokens": 3, "output_tokens": 1}
    message: dict[str, Any] = {"id": "m", "role": "assistant", "content": [], "model": MODEL, "usage": usage}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]
    lost: list[str] = []
    reader = StreamedReplyReader(MessagesAssembler(), lost.append, is_framed=True)
    data = b"".join(frames(events))
    found = [reader.feed(data[at : at + step]) for at in range(0, len(data), step)]
    (reply,) = [one for one in found if one is not None]
    reader.end()
    assert reply.text == "Hello"
    assert lost == []


@pytest.mark.parametrize("is_there", [True, False])
def test_a_client_of_an_older_openai_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    class Client:
        """As `httpx` names it."""

    Client.__module__ = "httpx._client"
    client = openai.OpenAI(api_key="k")
    client.close()
    monkeypatch.setattr(client, "_client", Client())
    if not is_there:
        monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(
        InputError, match="library httpx, and not httpx2; install openai 3 or newer, or start"
    ):
        attach(client, project=None).open()
