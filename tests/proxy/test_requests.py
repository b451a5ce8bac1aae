"""What a request is for is told by its headers and body, and equal messages have equal digests."""

from __future__ import annotations

import json
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.proxy.profiles import PROFILES, find_profile, recognize_agent
from sevenfold.proxy.requests import DigestCache, RequestFacts, digest_message, read_request

CLAUDE = find_profile("claude")
TOOLS: list[object] = [{"name": "read", "input_schema": {"type": "object"}}]


def read(body: object, path: str = "/v1/messages", *, agent: str = "claude", **headers: str) -> RequestFacts:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return read_request(path, named, json.dumps(body).encode(), find_profile(agent))


def user(content: object) -> dict[str, object]:
    return {"role": "user", "content": content}


def ask(*said: object, **fields: object) -> dict[str, object]:
    messages = [user(content) for content in said]
    return {"model": "claude-opus-5-5", "max_tokens": 9, "messages": messages, "tools": TOOLS, **fields}


@pytest.mark.parametrize(
    ("body", "purpose"),
    [
        (ask("hi"), "turn"),
        (ask("hi", tools=[]), "side request"),
        (ask("hi", max_tokens=0), "side request"),
        (ask("hi", output_config={"format": {"type": "json_schema"}}), "side request"),
        (ask("hi", "Your task is to create a detailed summary of the conversation so far"), "compaction"),
    ],
)
def test_what_a_request_of_claude_code_is_for(body: object, purpose: str) -> None:
    assert read(body).purpose == purpose


def test_a_compaction_is_known_behind_the_context_of_hooks() -> None:
    body = ask("hi", "Your task is to create a detailed summary of the conversation so far")
    context = {"role": "system", "content": "SessionStart hook additional context: The user likes herons."}
    said = cast("list[object]", body["messages"])
    assert read({**body, "messages": [*said, context]}).purpose == "compaction"


def test_a_sub_agent_and_a_count_are_told_by_header_and_path() -> None:
    assert read(ask("hi"), x_claude_code_agent_id="a7").purpose == "sub-agent"
    assert read(ask("hi"), "/v1/messages/count_tokens").purpose == "count"


def test_an_agent_that_never_has_tools_has_turns_without_them() -> None:
    assert read(ask("hi", tools=[]), agent="aider").purpose == "turn"


@pytest.mark.parametrize(
    "system",
    [
        "Generate a concise, one-line Git commit\nmessages. one-line Git commit messages please.",
        [{"type": "text", "text": "*Briefly* summarize this partial conversation about programming."}],
    ],
)
def test_what_aider_asks_beside_its_turns_is_told_by_the_system_prompt(system: object) -> None:
    body = ask("diff", tools=[], system=system)
    assert read(body, agent="aider").purpose == "side request"
    del body["system"]
    body["messages"] = [{"role": "system", "content": system}, user("diff")]
    assert read(body, "/v1/chat/completions", agent="aider").purpose == "side request"
    assert read(ask("one-line Git commit messages", tools=[]), agent="aider").purpose == "turn"


@pytest.mark.parametrize("system", [7, {"text": "x"}, [None, 3, {"text": 4}], None])
def test_a_system_prompt_of_no_known_form_is_no_side_request(system: object) -> None:
    assert read(ask("hi", tools=[], system=system), agent="aider").purpose == "turn"


def test_codex_says_what_a_request_is_for() -> None:
    body = {"model": "gpt-5", "input": "hi", "instructions": "be good", "tools": TOOLS}
    for kind, purpose in (("turn", "turn"), ("compact", "compaction"), ("memory", "side request")):
        told = json.dumps({"request_kind": kind})
        facts = read(body, "/v1/responses", agent="codex", x_codex_turn_metadata=told)
        assert (facts.wire, facts.purpose) == ("responses", purpose)


def test_a_breakpoint_that_moves_and_a_text_in_a_list_are_no_change() -> None:
    marked = [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]
    assert read(ask(marked)).messages == read(ask("hi")).messages
    assert read(ask(marked)).messages != read(ask("ho")).messages


def test_system_messages_of_chat_completions_are_the_system_prompt() -> None:
    body = {"model": "m", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]}
    facts = read(body, "/v1/chat/completions", agent="qwen")
    assert facts.system
    assert len(facts.messages) == 1


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"[" * 100_000, b'{"messages": 3}'])
def test_what_cannot_be_read_is_forwarded_as_something_else(body: bytes) -> None:
    facts = read_request("/v1/messages", {}, body, None)
    assert facts.purpose in ("other", "turn")
    assert facts.messages == ()


def test_agents_are_recognized_by_what_they_send() -> None:
    for profile in PROFILES:
        for start in profile.user_agents:
            assert recognize_agent({"user-agent": f"{start}1.2 (linux)"}) is profile
    assert recognize_agent({"x-claude-code-session-id": "s"}) is CLAUDE
    assert recognize_agent({"user-agent": "curl/8"}) is None


def test_the_session_is_the_agents_own_name_for_it() -> None:
    assert read(ask("hi"), x_claude_code_session_id="s1").session == "s1"
    assert read(ask("hi"), x_claude_code_session_id="s1", x_claude_code_agent_id="a").session == "s1/a"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "text", "cache_control", "role"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(messages=st.lists(JSON, max_size=6))
def test_digests_that_are_kept_are_those_that_are_made(messages: list[object]) -> None:
    cache = DigestCache(limit=3)
    assert [cache.digest(one) for one in (*messages, *messages)] == [
        digest_message(one) for one in (*messages, *messages)
    ]
