"""Requests as plain JSON over real HTTP, for what the SDK would not let a test send."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

import httpx2

from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, read_object
from sevenfold.core.usage import Usage, read_usage
from sevenfold.testing import Simulator

Fields: TypeAlias = Mapping[str, object]

OLDER, NEWER = "2023-06-01", "2026-10-21"
MODEL = "claude-opus-5"
"""Takes most things: no prefix check, no thinking unless asked, system messages, a small cache minimum."""
PROSE = "The quick brown fox jumps over the lazy dog. " * 60
"""Enough for any model's cache minimum but the largest, in one block."""
MARK = {"type": "ephemeral"}


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: JsonObject
    headers: Mapping[str, str]

    def at(self, *path: str | int) -> Json:
        """What stands at a place of the body; None where there is nothing."""
        value: Json = self.body
        for step in path:
            if isinstance(value, JsonObject) and isinstance(step, str):
                value = value.get(step)
            elif isinstance(value, tuple) and isinstance(step, int) and -len(value) <= step < len(value):
                value = value[step]
            else:
                return None
        return value

    @property
    def message(self) -> str:
        """Of an error."""
        return str(self.at("error", "message"))

    @property
    def code(self) -> Json:
        return self.at("error", "details", "error_code")

    @property
    def content(self) -> tuple[Json, ...]:
        content = self.at("content")
        return content if isinstance(content, tuple) else ()

    @property
    def usage(self) -> Usage:
        return read_usage(self.at("usage"))

    @property
    def kinds(self) -> list[Json]:
        """The types of the content's blocks."""
        return [block.get("type") for block in self.content if isinstance(block, JsonObject)]


@dataclass(frozen=True, slots=True)
class Asker:
    """Sends what it is told, with just enough around it to be a request."""

    sim: Simulator
    http: httpx2.Client

    def create(self, *said: object, **fields: object) -> Answer:
        """`said` are user texts or whole messages; `fields` go into the body, but for what a header holds."""
        told = dict(fields)
        path = str(told.pop("path", "/v1/messages"))
        headers = {"x-api-key": told.pop("key", "k"), "anthropic-version": told.pop("version", NEWER)}
        betas = told.pop("betas", ())
        if isinstance(betas, (list, tuple)) and betas:
            headers["anthropic-beta"] = ",".join(str(name) for name in cast("list[object]", betas))
        headers |= cast("dict[str, object]", told.pop("headers", {}))
        body: dict[str, object] = {"model": MODEL, "messages": [message(item) for item in said]}
        if "count_tokens" not in path:
            body["max_tokens"] = 1000
        return self.post(path, {**body, **told}, {key: str(value) for key, value in headers.items()})

    def count(self, *said: object, **fields: object) -> Answer:
        return self.create(*said, path="/v1/messages/count_tokens", **fields)

    def post(self, path: str, body: object, headers: Mapping[str, str]) -> Answer:
        return _answer(self.http.post(f"{self.sim.url}{path}", json=body, headers=dict(headers)))

    def send(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, data: bytes = b""
    ) -> Answer:
        url = f"{self.sim.url}{path}"
        return _answer(self.http.request(method, url, content=data, headers=dict(headers or {})))


def _answer(response: httpx2.Response) -> Answer:
    body = read_object(response.content) if response.content else EMPTY_OBJECT
    return Answer(response.status_code, body, dict(response.headers))


def message(said: object) -> object:
    return {"role": "user", "content": said} if isinstance(said, str) else said


def user(*blocks: object) -> Fields:
    return {"role": "user", "content": [text(item) if isinstance(item, str) else item for item in blocks]}


def assistant(*blocks: object) -> Fields:
    return {
        "role": "assistant",
        "content": [text(item) if isinstance(item, str) else item for item in blocks],
    }


def system(*blocks: object, **fields: object) -> Fields:
    content = [text(item) if isinstance(item, str) else item for item in blocks]
    return {"role": "system", "content": content, **fields}


def text(said: str, **fields: object) -> Fields:
    return {"type": "text", "text": said, **fields}


def tool(name: str = "look", **fields: object) -> Fields:
    return {"name": name, "description": "Looks.", "input_schema": {"type": "object"}, **fields}


def use(tool_use_id: str = "toolu_1", name: str = "look", **given: object) -> Fields:
    return {"type": "tool_use", "id": tool_use_id, "name": name, "input": given}


def result(tool_use_id: str = "toolu_1", content: object = "seen", **fields: object) -> Fields:
    return {"type": "tool_result", "tool_use_id": tool_use_id, "content": content, **fields}


def reply(answer: Answer) -> Fields:
    """An answer as the assistant's message of the next request."""
    return {"role": "assistant", "content": [plain(block) for block in answer.content]}


def blocks_of(message: object) -> list[Fields]:
    """The blocks of a message as a test wrote it."""
    assert isinstance(message, dict)
    return cast("list[Fields]", message["content"])


def role_of(message: object) -> object:
    assert isinstance(message, dict)
    return cast("object", message["role"])


def plain(value: Json) -> object:
    """Frozen JSON as something that can be changed and sent."""
    if isinstance(value, JsonObject):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def stream(ask: Asker, *said: object, **fields: object) -> list[JsonObject]:
    """The events of a streamed request, after a check of their names."""
    body = {"model": MODEL, "max_tokens": 1000, "stream": True, **fields}
    betas = body.pop("betas", "")
    headers = {"x-api-key": "k", "anthropic-version": NEWER}
    headers |= {"anthropic-beta": str(betas)} if betas else {}
    messages = [{"role": "user", "content": item} if isinstance(item, str) else item for item in said]
    url = f"{ask.sim.url}/v1/messages"
    with ask.http.stream("POST", url, json={**body, "messages": messages}, headers=headers) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        response.read()
        return list(_events(response.text))


def _events(text: str) -> Iterator[JsonObject]:
    for chunk in text.removesuffix("\n\n").split("\n\n"):
        name, _, data = chunk.partition("\n")
        event = read_object(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        yield event
