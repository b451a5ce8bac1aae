"""A chat model of LangChain goes through the layers with one line, whatever it calls its clients."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from functools import cached_property
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from pydantic import BaseModel, ConfigDict

from sevenfold.core.errors import InputError
from sevenfold.core.events import ResultSpilled
from sevenfold.integrations.langchain import attach_model
from sevenfold.testing import Prompt, Reply, Simulator, say
from tests.session.talk import Listener

LARGE = "line\n" * 50_000


class ChatAnthropic(BaseModel):
    """As LangChain's: it makes its clients itself, the first time that it needs one."""

    url: str

    @cached_property
    def _client(self) -> Any:
        return anthropic.Anthropic(api_key="k", base_url=self.url)

    @cached_property
    def _async_client(self) -> Any:
        return anthropic.AsyncAnthropic(api_key="k", base_url=self.url)

    def close(self) -> None:
        self._client.close()

    async def aclose(self) -> None:
        await self._async_client.close()

    def ask(self, messages: list[Any]) -> Any:
        return self._client.messages.create(**self._fields(messages))

    async def aask(self, messages: list[Any]) -> Any:
        return await self._async_client.messages.create(**self._fields(messages))

    def _fields(self, messages: list[Any]) -> Any:
        tools = [{"name": "Bash", "input_schema": {"type": "object"}}]
        return {"model": "claude-opus-5-5", "max_tokens": 100, "messages": messages, "tools": tools}


class ChatOpenAI(BaseModel):
    """As LangChain's: fields for clients, and for the parts of them that it asks."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    client: Any = None
    root_client: Any = None

    def ask(self, messages: list[Any]) -> Any:
        return self.client.create(model="gpt-5.5", messages=messages)


@pytest.fixture
def sim() -> Generator[Simulator]:
    def brain(prompt: Prompt) -> Reply:
        return say("done") if prompt.results else say(calls={"Bash": {"command": "ls"}})

    with Simulator(brain) as running:
        yield running


def go_on(answer: Any) -> list[Any]:
    result = {"type": "tool_result", "tool_use_id": answer.content[0].id, "content": LARGE}
    return [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": answer.content},
        {"role": "user", "content": [result]},
    ]


def test_clients_that_a_model_makes_itself_are_attached(sim: Simulator, tmp_path: Path) -> None:
    listener, given = Listener(), ChatAnthropic(url=sim.url)
    with attach_model(given, project=tmp_path, environ={"HOME": str(tmp_path)}, emit=listener) as model:
        assert type(model) is ChatAnthropic
        assert model.ask(go_on(model.ask([{"role": "user", "content": "look"}]))).content[0].text == "done"
    assert [type(event) for event in listener.events] == [ResultSpilled]
    assert sim.last.usage.prompt < 4_000
    given.ask(go_on(given.ask([{"role": "user", "content": "look"}])))
    given.close()
    assert sim.last.usage.prompt > 40_000, "the model that was handed in goes on as it was"


def test_calls_that_are_awaited_are_attached_too(sim: Simulator, tmp_path: Path) -> None:
    async def converse() -> None:
        given = ChatAnthropic(url=sim.url)
        attached = attach_model(given, project=tmp_path, environ={"HOME": str(tmp_path)})
        async with attached as model:
            await model.aask(go_on(await model.aask([{"role": "user", "content": "look"}])))
        await given.aclose()

    asyncio.run(converse())
    assert sim.last.usage.prompt < 4_000


def test_parts_of_a_client_are_those_of_the_attached_one(sim: Simulator, tmp_path: Path) -> None:
    root = openai.OpenAI(api_key="k", base_url=f"{sim.url}/v1")
    given = ChatOpenAI(root_client=root, client=root.chat.completions)
    call: Any = {"id": "c1", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": LARGE},
    ]
    attached = attach_model(given, project=tmp_path, environ={"HOME": str(tmp_path)})
    model = attached.open()
    model.ask(messages)
    attached.close()
    root.close()
    assert sim.last.usage.prompt < 4_000


@pytest.mark.parametrize("model", [object(), ChatOpenAI(), "claude-opus-5-5"])
def test_what_has_no_client_is_refused_with_a_way_out(model: object) -> None:
    with pytest.raises(InputError, match="sevenfold proxy"):
        attach_model(model)
