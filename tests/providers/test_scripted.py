"""The provider that loops are tested with."""

from __future__ import annotations

import asyncio

import pytest

from sevenfold.core.errors import CallUnexpected, Overloaded, StepsUnused
from sevenfold.core.prices import CATALOG
from sevenfold.core.requests import Capabilities, ModelRequest, ModelResponse
from sevenfold.core.usage import Usage, read_usage
from sevenfold.providers.provider import Delta, Provider, TextDelta, ThinkingDelta, ToolDelta
from sevenfold.providers.scripted import ScriptedProvider, make_response
from tests.providers.asking import MODEL, PROSE, ask, assistant, frozen, user


def send(provider: Provider, request: ModelRequest | None = None) -> ModelResponse:
    return asyncio.run(provider.send(request or ask()))


def test_steps_are_answered_in_their_order_and_requests_are_kept() -> None:
    with ScriptedProvider(
        ["One.", Overloaded("busy"), lambda request: make_response(f"For {request.purpose}.")]
    ) as provider:
        assert send(provider).text == "One."
        with pytest.raises(Overloaded):
            send(provider)
        assert send(provider, ask(who="notes")).text == "For notes."
    assert [request.purpose for request in provider.requests] == ["main", "main", "notes"]


def test_a_function_answers_for_ever() -> None:
    async def answer(request: ModelRequest) -> str:
        await asyncio.sleep(0)
        return f"{len(request.messages)} messages"

    with ScriptedProvider(answer) as provider:
        assert [send(provider).text for _ in range(3)] == ["1 messages"] * 3


def test_each_kind_of_request_may_have_steps_of_its_own() -> None:
    with ScriptedProvider(["main"], by_purpose={"notes": ["noted"]}) as provider:
        assert send(provider, ask(who="notes")).text == "noted"
        assert send(provider).text == "main"


def test_a_request_that_no_step_answers_fails_even_if_somebody_hides_it() -> None:
    provider = ScriptedProvider(["One."])
    send(provider)
    with pytest.raises(CallUnexpected, match=r"request 2, of 'summary'.*'Summarise\.'"):
        send(provider, ask(user("Summarise."), who="summary"))
    with pytest.raises(CallUnexpected):
        provider.check_done()


def test_a_step_that_nobody_asks_for_fails() -> None:
    with (
        pytest.raises(StepsUnused, match="1 for any, 2 for notes"),
        ScriptedProvider(["One."], by_purpose={"notes": ["a", "b"]}),
    ):
        pass


def test_a_test_that_failed_keeps_its_own_error() -> None:
    with pytest.raises(ZeroDivisionError), ScriptedProvider(["One."]):
        raise ZeroDivisionError


def test_a_reply_looks_like_one_of_a_provider() -> None:
    provider = ScriptedProvider(
        [make_response("Look.", think="Hmm.", calls={"read": {"path": "a"}, "list": {}})]
    )
    reply = send(provider)
    assert reply.stop_reason == "tool_use"
    assert (reply.id, reply.model) == ("msg_scripted_1", MODEL)
    assert len({call.id for call in reply.tool_uses} - {""}) == 2
    assert reply.tool_uses[0].input == frozen({"path": "a"})
    assert read_usage(reply.usage_wire) == reply.usage


@pytest.mark.moves_prefix(reason="compares two prompts of different length")
def test_usage_follows_the_length_of_the_request_unless_it_is_given() -> None:
    given = Usage(fresh=7, read=8, written_5m=9, output=1)
    provider = ScriptedProvider(
        [make_response("One."), make_response("Two."), make_response("Three.", usage=given)]
    )
    first = send(provider, ask(user(PROSE)))
    longer = ask(user(PROSE), assistant("One."), user(PROSE), system="Be brief.", who="second")
    second, third = send(provider, longer), send(provider, ask(who="third"))
    assert 0 < first.usage.prompt < second.usage.prompt / 1.9
    assert third.usage == given
    assert read_usage(third.usage_wire) == given


def test_a_watcher_is_told_what_the_reply_says() -> None:
    told: list[Delta] = []
    provider = ScriptedProvider([make_response("Look.", think="Hmm.", calls={"read": {"path": "a"}})])
    reply = asyncio.run(provider.send(ask(), told.append))
    call = reply.tool_uses[0].id
    assert told == [
        ThinkingDelta("Hmm."),
        TextDelta("Look."),
        ToolDelta(call, "read"),
        ToolDelta(call, "read", '{"path":"a"}'),
    ]
    asyncio.run(provider.close())


def test_capabilities_are_the_models_unless_they_are_given() -> None:
    model = CATALOG.find("claude-opus-5-5")
    assert not ScriptedProvider().capabilities(model).rewrites_history
    assert ScriptedProvider(dialect="openai").capabilities(model) == Capabilities(rewrites_history=True)
    own = Capabilities(rewrites_history=True, breakpoints=2)
    assert ScriptedProvider(capabilities=own).capabilities(model) is own
