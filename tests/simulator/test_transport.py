"""How requests come in and answers go out."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest
from anthropic import Anthropic

from sevenfold.core.models import MODELS
from sevenfold.testing import Choices, RateLimits, Simulator
from tests.simulator.asking import MARK, MODEL, NEWER, OLDER, PROSE, Asker, reply, text, tool, user

GOOD = {"x-api-key": "k", "anthropic-version": NEWER}


@pytest.mark.rule("transport-1")
def test_a_message_has_every_field_of_a_message(ask: Asker) -> None:
    answer = ask.create("Hello.")
    assert answer.status == 200
    assert str(answer.at("id")).startswith("msg_")
    assert [answer.at(key) for key in ("type", "role", "model")] == ["message", "assistant", MODEL]
    assert (answer.at("content", 0, "text"), answer.at("stop_reason")) == ("Hello.", "end_turn")
    assert {"stop_sequence", "stop_details", "usage"} <= answer.body.keys()


@pytest.mark.rule("transport-1")
def test_the_sdk_reads_a_message(sim: Simulator, client: Anthropic) -> None:
    message = client.messages.create(
        model=MODEL, max_tokens=100, messages=[{"role": "user", "content": "Hello."}]
    )
    assert message.content[0].type == "text"
    assert message.content[0].text == "Hello."
    assert message.usage.output_tokens > 0


@pytest.mark.rule("transport-2")
def test_beta_in_the_query_changes_nothing(ask: Asker) -> None:
    assert ask.create("Hello.", path="/v1/messages?beta=true").status == 200
    refused = ask.create("Hello.", path="/v1/messages?beta=true", context_management={"edits": []})
    assert refused.message == "context_management: Extra inputs are not permitted"


@pytest.mark.rule("transport-3")
def test_models_are_listed_page_by_page(sim: Simulator, client: Anthropic) -> None:
    names = [model.id for model in client.models.list(limit=5)]
    assert names == [model.name for model in MODELS]


@pytest.mark.rule("transport-3")
@pytest.mark.parametrize(
    ("query", "first", "last", "more"),
    [("limit=2", 0, 1, True), ("limit=1000", 0, -1, False), ("limit=3&after_id=claude-opus-5", 10, 12, True)],
)
def test_a_page_of_models_says_where_it_begins_and_ends(
    ask: Asker, query: str, first: int, last: int, more: bool
) -> None:
    page = ask.send("GET", f"/v1/models?{query}", GOOD)
    names = [model.name for model in MODELS]
    assert (page.at("first_id"), page.at("last_id"), page.at("has_more")) == (names[first], names[last], more)


@pytest.mark.rule("transport-3")
def test_models_can_be_paged_backwards(ask: Asker) -> None:
    names = [model.name for model in MODELS]
    page = ask.send("GET", f"/v1/models?limit=2&before_id={names[4]}", GOOD)
    assert (page.at("first_id"), page.at("last_id"), page.at("has_more")) == (names[2], names[3], True)


@pytest.mark.rule("transport-3")
@pytest.mark.parametrize("limit", ["0", "1001", "x"])
def test_a_page_of_no_size_is_refused(ask: Asker, limit: str) -> None:
    assert ask.send("GET", f"/v1/models?limit={limit}", GOOD).status == 400


@pytest.mark.rule("transport-4")
def test_a_model_is_described(sim: Simulator, client: Anthropic) -> None:
    model = client.models.retrieve("claude-haiku-4-5-20251001")
    assert (model.id, model.max_input_tokens, model.max_tokens) == ("claude-haiku-4-5", 200_000, 64_000)
    assert model.capabilities is not None
    assert model.capabilities.thinking.supported


@pytest.mark.rule("transport-4")
def test_an_unknown_model_is_not_described(ask: Asker) -> None:
    answer = ask.send("GET", "/v1/models/claude-nobody", GOOD)
    assert (answer.status, answer.message) == (404, "model: claude-nobody")


@pytest.mark.rule("transport-5")
def test_every_answer_has_a_request_id_of_its_own(ask: Asker) -> None:
    answers = [ask.create("Hello."), ask.create("Hello.", model="nobody"), ask.count("Hello.")]
    answers += [ask.send("GET", "/v1/models", GOOD), ask.send("GET", "/nowhere", GOOD)]
    ids = [answer.headers["request-id"] for answer in answers]
    assert len(set(ids)) == len(ids)
    assert answers[1].at("request_id") == ids[1]
    assert answers[4].at("request_id") == ids[4]


@pytest.mark.rule("transport-6")
def test_headers_name_organisation_workspace_and_limits(ask: Asker) -> None:
    headers = ask.create("Hello.", headers={"anthropic-workspace-id": "wrkspc_mine"}).headers
    assert headers["anthropic-organization-id"].startswith("org_")
    assert headers["anthropic-workspace-id"] == "wrkspc_mine"
    for kind in ("requests", "tokens", "input-tokens", "output-tokens"):
        limit, remaining, reset = (
            headers[f"anthropic-ratelimit-{kind}-{what}"] for what in ("limit", "remaining", "reset")
        )
        assert int(remaining) < int(limit)
        assert datetime.fromisoformat(reset) - ask.sim.now() == timedelta(minutes=1)


@pytest.mark.rule("transport-7")
def test_reading_from_the_cache_is_free_of_limits(ask: Asker) -> None:
    def remaining() -> int:
        answer = ask.create(user(text(PROSE, cache_control=MARK)))
        return int(answer.headers["anthropic-ratelimit-input-tokens-remaining"])

    first, second = remaining(), remaining()
    assert ask.sim.last.usage.read > 0
    assert (first - second, ask.sim.last.usage.fresh) == (0, 0)


@pytest.mark.rule("transport-8")
@pytest.mark.parametrize(
    "limits", [RateLimits(requests=1), RateLimits(input_tokens=1), RateLimits(output_tokens=1)]
)
def test_over_a_limit_requests_wait_for_the_next_minute(ask: Asker, limits: RateLimits) -> None:
    ask.sim.reset(choices=Choices(limits=limits))
    assert ask.create("Hello.").status == 200
    ask.sim.advance(timedelta(seconds=20))
    refused = ask.create("Hello.")
    assert (refused.status, refused.at("error", "type")) == (429, "rate_limit_error")
    assert refused.headers["retry-after"] == "40"
    ask.sim.advance(timedelta(seconds=40))
    assert ask.create("Hello.").status == 200


@pytest.mark.rule("transport-9")
@pytest.mark.parametrize(
    "headers", [{"x-api-key": "k"}, {"authorization": "Bearer k"}, {"Authorization": "bearer k"}]
)
def test_a_key_comes_in_either_header(ask: Asker, headers: dict[str, str]) -> None:
    answer = ask.send("GET", "/v1/models", {"anthropic-version": NEWER, **headers})
    assert answer.status == 200


@pytest.mark.rule("transport-9")
@pytest.mark.parametrize("headers", [{}, {"x-api-key": ""}, {"authorization": "Basic k"}])
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
def test_without_a_key_nothing_is_answered(ask: Asker, path: str, headers: dict[str, str]) -> None:
    answer = ask.post(path, {}, {"anthropic-version": NEWER, **headers})
    assert (answer.status, answer.at("error", "type")) == (401, "authentication_error")


@pytest.mark.rule("transport-10")
@pytest.mark.parametrize(("version", "status"), [(NEWER, 200), (OLDER, 200), ("2024-01-01", 400), ("", 400)])
def test_two_versions_are_known(ask: Asker, version: str, status: int) -> None:
    assert ask.create("Hello.", version=version).status == status


@pytest.mark.rule("transport-10")
def test_a_version_is_required(ask: Asker) -> None:
    answer = ask.post("/v1/messages", {}, {"x-api-key": "k"})
    assert (answer.status, answer.message) == (400, "anthropic-version: header is required")


@pytest.mark.rule("transport-11")
def test_an_unknown_beta_is_refused_by_name(ask: Asker) -> None:
    answer = ask.create("Hello.", betas=["compact-2026-01-12", "flying-2027-01-01"])
    assert answer.status == 400
    assert answer.message == "Unexpected value(s) `flying-2027-01-01` for the `anthropic-beta` header."


@pytest.mark.rule("transport-11")
def test_the_betas_of_the_sdk_and_of_claude_code_are_known(ask: Asker) -> None:
    sent = "claude-code-20250219, interleaved-thinking-2025-05-14,context-management-2025-06-27"
    assert ask.create("Hello.", headers={"anthropic-beta": sent}).status == 200


@pytest.mark.rule("transport-11")
def test_betas_may_come_in_several_headers(ask: Asker) -> None:
    edits, compact = "context-management-2025-06-27", "compact-2026-01-12"
    headers = [("anthropic-beta", edits), ("anthropic-beta", compact), *GOOD.items()]
    management = {"edits": [{"type": "clear_thinking_20251015"}, {"type": "compact_20260112"}]}
    body = {
        "model": MODEL,
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Hi"}],
        "context_management": management,
    }
    assert ask.http.post(f"{ask.sim.url}/v1/messages", json=body, headers=headers).status_code == 200


@pytest.mark.rule("transport-12")
def test_a_body_over_the_limit_is_too_large(ask: Asker) -> None:
    ask.sim.reset(choices=Choices(request_limit_bytes=2_000))
    answer = ask.create("x" * 3_000)
    assert (answer.status, answer.at("error", "type")) == (413, "request_too_large")
    assert ask.create("x" * 1_000).status == 200
    assert Choices().request_limit_bytes == 32 * 2**20


@pytest.mark.rule("transport-13")
@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b'{"model": NaN}', b"\xff"])
def test_a_body_that_is_no_object_is_refused(ask: Asker, data: bytes) -> None:
    answer = ask.send("POST", "/v1/messages", GOOD, data)
    assert (answer.status, answer.at("error", "type")) == (400, "invalid_request_error")


@pytest.mark.rule("transport-14")
@pytest.mark.parametrize("path", ["/", "/v1/complete", "/v1/messages/batches"])
def test_a_path_that_is_not_there_is_not_found(ask: Asker, path: str) -> None:
    answer = ask.send("POST", path, GOOD)
    assert (answer.status, answer.at("error", "type")) == (404, "not_found_error")


@pytest.mark.rule("transport-14")
def test_a_method_that_is_not_there_is_an_error_of_the_same_shape(ask: Asker) -> None:
    answer = ask.send("GET", "/v1/messages", GOOD)
    assert (answer.status, answer.at("type")) == (405, "error")


@pytest.mark.rule("transport-15")
def test_too_many_messages_are_refused(ask: Asker) -> None:
    ask.sim.reset(choices=Choices(messages_limit=3))
    assert ask.create("a", "b", "c").status == 200
    assert ask.create("a", "b", "c", "d").status == 400
    assert Choices().messages_limit == 100_000


@pytest.mark.rule("transport-16")
def test_workspaces_share_no_cache(ask: Asker) -> None:
    said = user(text(PROSE, cache_control=MARK))
    reads = [ask.create(said, key=key).usage.read for key in ("one", "two", "one")]
    assert [read > 0 for read in reads] == [False, False, True]


@pytest.mark.rule("transport-16")
def test_two_keys_of_one_workspace_share_a_cache(ask: Asker) -> None:
    said, headers = user(text(PROSE, cache_control=MARK)), {"anthropic-workspace-id": "wrkspc_shared"}
    reads = [ask.create(said, key=key, headers=headers).usage.read for key in ("one", "two")]
    assert [read > 0 for read in reads] == [False, True]


@pytest.mark.rule("transport-17")
@pytest.mark.parametrize("name", ["claude-sonnet-4-5", "claude-sonnet-4-5-20250929"])
def test_a_model_is_named_as_it_was_asked_for(ask: Asker, name: str) -> None:
    assert ask.create("Hello.", model=name).at("model") == name


def test_ids_count_up() -> None:
    with Simulator() as sim:
        client = sim.client()
        for _ in range(2):
            client.messages.create(model=MODEL, max_tokens=9, messages=[{"role": "user", "content": "Hi"}])
        ids = [entry.request_id for entry in sim.ledger.entries]
    assert [int(re.sub(r"\D", "", name)) for name in ids] == [1, 2]


CLAUDE_CODE = (
    "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,per-turn-control-2026-07-01,"
    "mid-conversation-tool-changes-2026-07-01,thinking-token-count-2026-05-13,advanced-tool-use-2025-11-20,"
    "effort-2025-11-24"
)


def test_a_request_as_claude_code_sends_it_is_served_and_cached(ask: Asker) -> None:
    note = {"role": "system", "content": [text("SessionStart hook additional context: nothing.")]}
    reminder = text("<system-reminder>\nInstructions.\n</system-reminder>")
    tools = [tool("Read"), tool("ToolSearch"), tool("WebFetch", defer_loading=True)]
    fields: dict[str, object] = {
        "path": "/v1/messages?beta=true",
        "version": OLDER,
        "headers": {"anthropic-beta": CLAUDE_CODE},
        "model": "claude-opus-5-5",
        "max_tokens": 128_000,
        "system": [text("billing"), text(PROSE, cache_control=MARK), text("Be brief.", cache_control=MARK)],
        "tools": tools,
        "thinking": {"type": "adaptive", "display": "omitted"},
        "output_config": {"effort": "medium"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "metadata": {"user_id": "user_1"},
    }
    first = ask.create(user(reminder, text("Hi", cache_control=MARK)), note, **fields)
    assert first.status == 200
    said = [user(reminder, "Hi"), note, reply(first), user(text("Go on.", cache_control=MARK))]
    second = ask.create(*said, **fields)
    assert second.usage.read == first.usage.written_5m > 500
    assert ask.sim.last.difference is None
