"""Histories of every kind of wrong, and what the API says to them."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import httpx2
from hypothesis import strategies as st

from sevenfold.core.json import EMPTY_OBJECT, JsonObject
from sevenfold.core.messages import (
    Block,
    Document,
    Image,
    Message,
    Opaque,
    RedactedThinking,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    ToolUseId,
    write_message,
)
from sevenfold.core.models import Model
from sevenfold.core.normalize import NormalizeRules
from sevenfold.simulator.wire.models import find_model_features
from sevenfold.testing import Choices, Simulator

SOURCE = JsonObject({"type": "base64", "media_type": "image/png", "data": "aGk="})
PDF = JsonObject({"type": "base64", "media_type": "application/pdf", "data": "aGk="})
TEXTS = st.sampled_from(["Yes.", "", " ", "half \ud83d", "\ud83d\ude00 whole", "trailing "])
IDS = st.sampled_from([ToolUseId(f"toolu_{at}") for at in range(4)])
FIELDS = st.sampled_from([EMPTY_OBJECT, EMPTY_OBJECT, EMPTY_OBJECT, JsonObject({"id": "msg_1"})])

UNREADABLE: list[Block] = [
    Opaque(JsonObject({"text": "of no type"})),
    Opaque(JsonObject({"type": None})),
    Opaque(JsonObject({"type": "text", "text": None})),
]
INNER: st.SearchStrategy[Block] = st.one_of(
    TEXTS.map(Text),
    st.just(Image(SOURCE)),
    st.just(Opaque(JsonObject({"type": "tool_reference", "tool_name": "x"}))),
    st.sampled_from(UNREADABLE),
    st.just(Thinking("Hm.", "signed")),
)
RESULTS = st.builds(
    ToolResult,
    IDS,
    st.one_of(st.none(), TEXTS, st.lists(INNER, max_size=3).map(tuple)),
    st.sampled_from([None, True]),
)
BLOCKS: st.SearchStrategy[Block] = st.one_of(
    TEXTS.map(Text),
    st.just(Text("cited", JsonObject({"citations": (JsonObject({"type": "char_location"}),)}))),
    st.builds(Thinking, TEXTS, st.sampled_from([None, "signed"])),
    st.just(RedactedThinking("x")),
    st.builds(ToolUse, IDS, st.just("look"), st.just(JsonObject({"at": "\udc00"}))),
    RESULTS,
    RESULTS,
    st.just(Image(SOURCE)),
    st.just(Document(PDF)),
    st.sampled_from(UNREADABLE),
    st.just(Opaque(JsonObject({"type": "tool_use", "id": "bad", "name": "look", "input": "no object"}))),
    st.just(Opaque(JsonObject({"type": "web_search_tool_result", "tool_use_id": "srv", "content": ()}))),
)
ROLES: st.SearchStrategy[Role] = st.sampled_from(["user", "assistant", "assistant", "system"])
MESSAGES = st.builds(Message, ROLES, st.one_of(TEXTS, st.lists(BLOCKS, max_size=4).map(tuple)), FIELDS)
HISTORIES = st.lists(MESSAGES, min_size=1, max_size=12)


def rules_of(model: Model) -> NormalizeRules:
    return NormalizeRules(model.takes_system_role, find_model_features(model).takes_prefill)


@dataclass(frozen=True, slots=True)
class Api:
    """The whole Messages API, with nothing forgiven but signatures that it did not make."""

    simulator: Simulator
    http: httpx2.Client

    def refusal(self, messages: Sequence[Message], model: Model) -> str | None:
        """What it answers to these messages; None when it takes them."""
        wires = [write_message(message) for message in messages]
        body = {"model": model.name, "max_tokens": 1_000, "messages": wires}
        headers = {"x-api-key": "k", "anthropic-version": "2026-10-21"}
        answer = self.http.post(f"{self.simulator.url}/v1/messages", json=body, headers=headers)
        return None if answer.status_code == 200 else answer.text


@contextmanager
def open_api() -> Generator[Api]:
    choices = Choices(empty_text=False, foreign_signatures="keep")
    with Simulator(choices=choices) as simulator, httpx2.Client(trust_env=False, timeout=60) as http:
        yield Api(simulator, http)


def is_encodable(message: Message) -> bool:
    """Whether UTF-8 can hold it."""
    try:
        json.dumps(write_message(message), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
