"""What the server answers, in every version of the protocol."""

from __future__ import annotations

import hashlib
import json

import pytest

from sevenfold.integrations.mcp_server.catalog import INSTRUCTIONS, MCP_PROMPTS, MCP_TOOLS, list_templates
from sevenfold.integrations.mcp_server.dispatch import MAX_ANSWER_CHARS
from sevenfold.integrations.mcp_server.protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    as_wire,
    read_rpc,
)
from tests.integrations.mcp_server.talking import ALL_VERSIONS, MEMORIES, FakeClient, make_request

PINNED = {
    "2024-11-05": (3_605, "002e71085f3a21bf"),
    "2025-03-26": (4_153, "7ff6527dc8054b92"),
    "2025-06-18": (4_389, "aff65f41d365b8f2"),
    "2025-11-25": (4_389, "aff65f41d365b8f2"),
    "2026-07-28": (4_389, "aff65f41d365b8f2"),
}
"""Of everything that a prompt may hold. It is cached: change it only together with the texts, on purpose."""

GOOD_CALLS: list[tuple[str, dict[str, object]]] = [
    ("tools/list", {}),
    ("tools/call", {"name": "recall", "arguments": {"query": "how do we retry?", "limit": 3}}),
    ("tools/call", {"name": "remember", "arguments": {"text": "We ship on Tuesdays.", "type": "project"}}),
    ("tools/call", {"name": "search_sessions", "arguments": {"query": "retry"}}),
    ("tools/call", {"name": "read_result", "arguments": {"id": "toolu_1", "offset": 0}}),
    ("tools/call", {"name": "spend", "arguments": {}}),
    ("tools/call", {"name": "spend"}),
    ("tools/call", {"name": "recall", "arguments": {}}),
    ("resources/list", {}),
    ("resources/list", {"cursor": "200"}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "sevenfold://memory/MEMORY.md"}),
    ("resources/read", {"uri": "sevenfold://memory/note-7.md"}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "recall", "arguments": {"query": "retries"}}),
    ("prompts/get", {"name": "spend"}),
]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_every_result_fits_the_schema_of_its_version(version: str) -> None:
    methods = pytest.importorskip("mcp_types.methods")
    client = FakeClient(version)
    for method, params in GOOD_CALLS:
        methods.validate_client_request(method, version, make_request(method, version, **params)["params"])
        assert methods.validate_server_result(method, version, client.result(method, **params)) is None
    first = "initialize" if version != "2026-07-28" else "server/discover"
    result = client.result(first, protocolVersion=version)
    assert methods.validate_server_result(first, version, result) is None


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_descriptions_are_the_same_bytes_in_every_session(version: str) -> None:
    listed = [
        [tool.listed(version) for tool in MCP_TOOLS],
        [prompt.listed(version) for prompt in MCP_PROMPTS],
        list_templates(version),
        INSTRUCTIONS,
    ]
    data = json.dumps(listed, separators=(",", ":"), ensure_ascii=False).encode()
    assert (len(data), hashlib.sha256(data).hexdigest()[:16]) == PINNED[version]


def test_tools_are_listed_alike_whatever_happened_before() -> None:
    client = FakeClient()
    before = client.result("tools/list")
    client.result("tools/call", name="remember", arguments={"text": "We ship on Tuesdays."})
    assert client.result("tools/list") == before
    assert [tool["name"] for tool in before["tools"]] == [
        "recall",
        "remember",
        "search_sessions",
        "read_result",
        "spend",
    ]


def test_calls_reach_the_operations_of_the_project_and_come_back_as_text_alone() -> None:
    client = FakeClient()
    result = client.result("tools/call", name="recall", arguments={"query": "retries", "limit": 3})
    assert result == {"content": [{"type": "text", "text": "recalled for retries"}]}
    client.result("tools/call", name="remember", arguments={"text": "We ship on Tuesdays.", "name": "ship"})
    client.result("tools/call", name="read_result", arguments={"id": "/srv/tool-results/x.txt"})
    assert client.operations.calls == [
        ("recall", {"cwd": "/srv/app", "prompt": "retries", "limit": 3}),
        ("remember", {"cwd": "/srv/app", "content": "We ship on Tuesdays.", "name": "ship"}),
        ("read_result", {"cwd": "/srv/app", "path": "/srv/tool-results/x.txt"}),
    ]


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        (
            "search_sessions",
            ["## Retries", "codex in app, no date", "Open it with: codex resume 1", "may be missing"],
        ),
        ("read_result", ["part", "9 bytes in all; read on with offset 4"]),
        ("spend", ["the last day: $0.0015 of $2.0000, 20 of 300 tokens", "recall: 2 calls"]),
        ("remember", ["it waits for review"]),
    ],
)
def test_answers_of_operations_are_told_in_words(tool: str, expected: list[str]) -> None:
    arguments = {"search_sessions": {"query": "x"}, "read_result": {"id": "x"}, "remember": {"text": "x"}}
    result = FakeClient().result("tools/call", name=tool, arguments=arguments.get(tool, {}))
    assert all(part in result["content"][0]["text"] for part in expected)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, "query is missing"),
        ({"query": 7}, "query is no text"),
        ({"query": " "}, "query is no text, or is empty"),
        ({"query": "x" * 2_001}, "longer than 2,000"),
        ({"query": "x", "limit": True}, "no whole number from 1 to 20"),
        ({"query": "x", "limit": 0}, "no whole number from 1 to 20"),
        ({"query": "x", "depth": 1}, "recall has no argument 'depth'; it takes query, limit"),
    ],
)
def test_wrong_arguments_are_an_error_that_a_model_can_read(
    arguments: dict[str, object], expected: str
) -> None:
    client = FakeClient()
    result = client.result("tools/call", name="recall", arguments=arguments)
    assert result["isError"] is True
    assert expected in result["content"][0]["text"]
    assert client.operations.calls == []


def test_an_operation_that_fails_is_an_error_result_and_a_bug_is_no_end() -> None:
    client = FakeClient()

    def fail(operation: str) -> None:
        raise ValueError("a bug") if operation == "spend" else OSError("no disk")

    assert "there is no memory" not in str(client.result("resources/list"))
    client.operations.before = fail
    problems: list[str] = []
    client.backend.report = problems.append
    assert client.error("tools/call", name="spend")["code"] == INTERNAL_ERROR
    assert problems == ["tools/call: ValueError: a bug"]
    client.operations.before = lambda _operation: None
    assert client.result("tools/call", name="spend")["content"]


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("tools/call", {"name": "delete_all"}, INVALID_PARAMS),
        ("tools/call", {"name": "recall", "arguments": ["x"]}, INVALID_PARAMS),
        ("tools/call", {}, INVALID_PARAMS),
        ("prompts/get", {"name": "nothing"}, INVALID_PARAMS),
        ("prompts/get", {"name": "recall"}, INVALID_PARAMS),
        ("resources/read", {}, INVALID_PARAMS),
        ("resources/list", {"cursor": "a"}, INVALID_PARAMS),
        ("resources/list", {"cursor": 7}, INVALID_PARAMS),
        ("resources/subscribe", {"uri": "x"}, METHOD_NOT_FOUND),
        ("logging/setLevel", {"level": "info"}, METHOD_NOT_FOUND),
        ("completion/complete", {}, METHOD_NOT_FOUND),
    ],
)
@pytest.mark.parametrize("version", ["2024-11-05", "2026-07-28"])
def test_what_the_server_does_not_have_is_a_protocol_error(
    method: str, params: dict[str, object], code: int, version: str
) -> None:
    assert FakeClient(version).error(method, **params)["code"] == code


def test_methods_of_the_other_kind_of_version_do_not_exist() -> None:
    assert FakeClient("2026-07-28").error("ping")["code"] == METHOD_NOT_FOUND
    assert FakeClient("2025-11-25").error("server/discover")["code"] == METHOD_NOT_FOUND
    assert FakeClient("2025-11-25").result("ping") == {}


@pytest.mark.parametrize(
    "uri", ["sevenfold://memory/none.md", "file:///etc/passwd", "sevenfold://memory/../x"]
)
def test_a_resource_that_is_not_there_has_the_code_of_its_version(uri: str) -> None:
    assert FakeClient("2025-11-25").error("resources/read", uri=uri)["code"] == RESOURCE_NOT_FOUND
    assert FakeClient("2026-07-28").error("resources/read", uri=uri)["code"] == INVALID_PARAMS


def test_pages_of_resources_join_to_the_whole_list() -> None:
    client, cursor, found = FakeClient(), None, list[str]()
    for _ in range(10):
        page = client.result("resources/list", **({"cursor": cursor} if cursor else {}))
        assert len(page["resources"]) <= 100
        found += [item["name"] for item in page["resources"]]
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    assert found == ["MEMORY.md", *MEMORIES]


def test_a_long_answer_is_cut_and_says_so_and_half_a_character_pair_is_replaced() -> None:
    client = FakeClient()
    text = client.result("tools/call", name="recall", arguments={"query": "\ud800"})["content"][0]["text"]
    assert text == "recalled for ?"
    MEMORIES["long.md"] = "a line\n" * 20_000
    try:
        found = client.result("resources/read", uri="sevenfold://memory/long.md")["contents"][0]["text"]
    finally:
        del MEMORIES["long.md"]
    assert len(found) < MAX_ANSWER_CHARS + 100
    assert found.endswith("more characters were left out; ask for less at once]")


@pytest.mark.parametrize("asked", ["2026-07-28", "1999-01-01", 7, None])
def test_a_handshake_at_an_unknown_version_gets_the_newest_that_has_one(asked: object) -> None:
    client = FakeClient()
    client.state.version = None
    assert client.result("initialize", protocolVersion=asked)["protocolVersion"] == "2025-11-25"
    assert client.state.version == "2025-11-25"


def test_nothing_but_a_ping_is_answered_before_the_handshake() -> None:
    client = FakeClient()
    client.state.version = None
    assert client.error("tools/list")["code"] == INVALID_REQUEST
    assert client.result("ping") == {}


def test_a_stateless_request_changes_nothing_for_the_next_one() -> None:
    client = FakeClient("2026-07-28")
    assert client.result("tools/list")["resultType"] == "complete"
    client.version = "2025-11-25"
    assert client.error("tools/list")["code"] == INVALID_REQUEST


def test_a_stateless_request_at_another_version_is_told_which_there_are() -> None:
    client = FakeClient("2026-07-28")
    request = make_request("server/discover", "2026-07-28")
    as_wire(as_wire(request["params"])["_meta"])[VERSION_KEY] = "2027-01-01"
    message = read_rpc(request)
    assert message is not None
    answer = client.dispatcher.answer(message, client.state)
    assert answer["error"] == {
        "code": UNSUPPORTED_VERSION,
        "message": "this version is not supported",
        "data": {"supported": ["2026-07-28"], "requested": "2027-01-01"},
    }
