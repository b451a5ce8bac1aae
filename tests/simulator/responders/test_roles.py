"""Who may say what, where, and how tool requests and results pair up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.models import MODELS
from sevenfold.testing import Prompt, Reply, say
from tests.simulator.asking import (
    MARK,
    NEWER,
    PROSE,
    Asker,
    Fields,
    assistant,
    plain,
    result,
    system,
    text,
    tool,
    use,
    user,
)

CLEAR_AT = "mid-conversation-system-clear-at-2026-08-21"
SERVER_RESULT: Fields = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
GOOD = {"x-api-key": "k", "anthropic-version": NEWER}


@pytest.mark.rule("roles-1")
@pytest.mark.parametrize("role", ["tool", "developer", "", None, 5])
def test_an_unknown_role_is_refused(ask: Asker, role: object) -> None:
    answer = ask.create({"role": role, "content": "Hi"})
    assert answer.status == 400
    assert answer.message.startswith("messages.0.role: ")


@pytest.mark.rule("roles-2")
@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "user", "content": ""}],
        [{"role": "user", "content": []}],
        [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": []},
            {"role": "user", "content": "x"},
        ],
        [{"role": "user"}],
        [{"role": "user", "content": 5}],
        [{"role": "user", "content": ["Hi"]}],
        [{"role": "user", "content": [{"text": "Hi"}]}],
    ],
)
def test_nothing_may_be_empty(ask: Asker, messages: list[object]) -> None:
    answer = ask.create(messages=messages)
    assert (answer.status, answer.at("error", "type")) == (400, "invalid_request_error")


@pytest.mark.rule("roles-3")
def test_text_alone_is_one_text_block(ask: Asker) -> None:
    mark = {"cache_control": MARK}
    written = ask.create(PROSE, **mark).usage
    read = ask.create(user(PROSE), **mark).usage
    assert written.written_5m == read.read > 0


@pytest.mark.rule("roles-4")
def test_neighbours_of_one_role_are_one_turn(ask: Asker) -> None:
    split = ask.create(PROSE, "And?", cache_control=MARK).usage
    joined = ask.create(user(PROSE, "And?"), cache_control=MARK).usage
    assert split.written_5m == joined.read > 0
    two = [assistant(use("toolu_1")), assistant(use("toolu_2"))]
    answered = [user(result("toolu_1")), user(result("toolu_2"), "What now?")]
    assert ask.create("Look.", *two, *answered, tools=[tool()]).status == 200


@pytest.mark.rule("roles-5")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_a_system_message_is_for_some_models(ask: Asker, model: object) -> None:
    found = next(item for item in MODELS if item == model)
    answer = ask.create("Hi", system("Be brief."), model=found.name)
    assert answer.status == (200 if found.takes_system_role else 400)
    if answer.status == 400:
        assert "role 'system' is not supported on this model" in answer.message


@pytest.mark.rule("roles-6")
def test_a_system_message_is_never_first(ask: Asker) -> None:
    answer = ask.create(system("Be brief."), "Hi")
    assert answer.status == 400
    assert answer.message.startswith("messages.0: ")


@pytest.mark.rule("roles-7")
@pytest.mark.parametrize(
    ("before", "status"),
    [
        (["Hi"], 200),
        (["Look.", assistant(use()), user(result())], 200),
        (["Hi", assistant("Hello.")], 400),
        (["Search.", assistant("Found:", SERVER_RESULT)], 200),
    ],
    ids=["user", "tool results", "assistant", "server tool"],
)
def test_what_a_system_message_may_follow(ask: Asker, before: list[object], status: int) -> None:
    assert ask.create(*before, system("Be brief."), tools=[tool()]).status == status


@pytest.mark.rule("roles-8")
@pytest.mark.parametrize(
    ("after", "status"),
    [
        ([], 200),
        ([assistant("Hello."), "Go on."], 200),
        (["Hello?"], 400),
        ([system("Be kind.")], 200),
        ([system("Be kind."), "Hello?"], 400),
        ([system("Be kind."), assistant("Hello."), "Go on."], 200),
    ],
    ids=["last", "assistant", "user", "another", "another and user", "another and assistant"],
)
def test_what_may_follow_a_system_message(ask: Asker, after: list[object], status: int) -> None:
    assert ask.create("Hi", system("Be brief."), *after).status == status


@pytest.mark.rule("roles-9")
@pytest.mark.parametrize(
    "block", [use(), result(), {"type": "image", "source": {}}, {"type": "thinking", "thinking": "x"}]
)
def test_a_system_message_holds_text(ask: Asker, block: object) -> None:
    answer = ask.create("Hi", system(block))
    assert answer.status == 400
    assert "not allowed in system messages" in answer.message


@pytest.mark.rule("roles-10")
def test_a_cleared_message_is_shown_until_the_user_speaks_again(ask: Asker) -> None:
    seen: list[str] = []

    def listen(prompt: Prompt) -> str:
        seen.append(" ".join(message.role for message in prompt.messages))
        return "Hello."

    ask.sim.reset(listen)
    note = system(PROSE, clear_at="next_user_message")
    first = ask.create("Hi", note, betas=[CLEAR_AT]).usage
    later = ask.create("Hi", note, assistant("Hello."), "Go on.", betas=[CLEAR_AT]).usage
    assert first.prompt > 500 > later.prompt
    assert seen == ["user system", "user assistant user"]


@pytest.mark.rule("roles-10")
def test_a_cleared_message_stays_while_tools_are_called(ask: Asker) -> None:
    note = system(PROSE, clear_at="next_user_message")
    said = ["Look.", note, assistant(use()), user(result())]
    assert ask.create(*said, betas=[CLEAR_AT], tools=[tool()]).usage.prompt > 500


@pytest.mark.rule("roles-10")
@pytest.mark.parametrize(
    ("note", "betas"),
    [
        (system(text("x", cache_control=MARK), clear_at="next_user_message"), [CLEAR_AT]),
        (system("x", clear_at="tomorrow"), [CLEAR_AT]),
        (system("x", clear_at="never"), []),
    ],
    ids=["marked", "unknown", "no beta"],
)
def test_a_cleared_message_has_rules_of_its_own(ask: Asker, note: object, betas: list[str]) -> None:
    assert ask.create("Hi", note, betas=betas).status == 400


@pytest.mark.rule("roles-11")
@pytest.mark.parametrize(
    ("fields", "betas", "status"),
    [
        ({"output_config": {"effort": "low"}}, ["mid-conversation-output-config-2026-07-01"], 200),
        ({"output_config": {"effort": "low"}}, ["per-turn-control-2026-07-01"], 200),
        ({"output_config": {"effort": "huge"}}, ["mid-conversation-output-config-2026-07-01"], 400),
        ({"output_config": {"effort": "low"}}, [], 400),
        ({}, [], 400),
    ],
)
def test_a_change_of_effort_needs_no_words(
    ask: Asker, fields: dict[str, object], betas: list[str], status: int
) -> None:
    assert ask.create("Hi", system(**fields), betas=betas).status == status


@pytest.mark.rule("roles-12")
@pytest.mark.parametrize(
    ("change", "beta", "code"),
    [
        ({"type": "tool_reference", "name": "late"}, "mid-conversation-tool-changes-2026-07-01", None),
        (
            {"type": "tool_reference", "name": "unknown"},
            "mid-conversation-tool-changes-2026-07-01",
            "tool_reference_unresolved",
        ),
        ({"type": "tool_definition", "definition": tool("new")}, "inline-tools-2026-09-15", None),
    ],
)
@pytest.mark.parametrize("kind", ["tool_addition", "tool_removal"])
def test_a_tool_change_names_a_tool(
    ask: Asker, kind: str, change: dict[str, object], beta: str, code: str | None
) -> None:
    note, tools = system({"type": kind, "tool": change}), [tool("late", defer_loading=True)]
    assert ask.create("Hi", note, tools=tools).status == 400
    answer = ask.create("Hi", note, tools=tools, betas=[beta])
    assert (answer.status, answer.code) == (400 if code else 200, code)


@pytest.mark.rule("roles-13")
@pytest.mark.parametrize(
    "messages",
    [
        [user(use())],
        [user({"type": "thinking", "thinking": "x", "signature": "y"})],
        ["Hi", assistant(result()), "Go on."],
        ["Hi", assistant({"type": "image", "source": {}}), "Go on."],
        [user({"type": "hologram"})],
        [user({"type": "tool_use", "id": "toolu_1", "name": "look"})],
        [
            "Hi",
            assistant({"type": "tool_use", "id": "toolu_1", "name": "look", "input": "x"}),
            user(result()),
        ],
        ["Hi", assistant(use()), user({"type": "tool_result"})],
        ["Hi", assistant(use()), user(result(content=5))],
        ["Hi", assistant({"type": "thinking", "thinking": "x"}), "Go on."],
        [user({"type": "image"})],
    ],
)
def test_a_block_out_of_place_or_shape_is_refused(ask: Asker, messages: list[object]) -> None:
    answer = ask.create(*messages, tools=[tool()])
    assert answer.status == 400
    assert answer.message.startswith("messages.")


@pytest.mark.rule("roles-14")
@pytest.mark.parametrize(
    "messages",
    [
        ["Look.", assistant(use()), "Never mind."],
        ["Look.", assistant(use())],
        ["Look.", assistant(use(), use("toolu_2")), user(result("toolu_2"))],
        ["Look.", assistant(use()), "Never mind.", user(result())],
    ],
    ids=["unanswered", "last", "one of two", "too late"],
)
def test_every_tool_request_is_answered_at_once(ask: Asker, messages: list[object]) -> None:
    answer = ask.create(*messages, tools=[tool()])
    assert answer.status == 400
    if messages[-1] != user(result()):
        told = "messages.1: tool_use ids were found without tool_result blocks immediately after: toolu_1. "
        assert answer.message.startswith(told)


@pytest.mark.rule("roles-15")
@pytest.mark.parametrize(
    "messages",
    [
        [user(result())],
        ["Look.", assistant(use()), user(result(), result("toolu_9"))],
        ["Look.", assistant(use()), user(result()), assistant("Seen."), user(result())],
    ],
    ids=["alone", "another", "answered before"],
)
def test_a_result_without_its_request_is_refused(ask: Asker, messages: list[object]) -> None:
    answer = ask.create(*messages, tools=[tool()])
    assert answer.status == 400
    assert "unexpected tool_use_id found in tool_result blocks: toolu_" in answer.message


@pytest.mark.rule("roles-16")
def test_results_come_first(ask: Asker) -> None:
    before = ["Look.", assistant(use())]
    assert ask.create(*before, user(result(), "And?"), tools=[tool()]).status == 200
    answer = ask.create(*before, user("And?", result()), tools=[tool()])
    assert answer.message == "messages.2.content.1: tool_result blocks must come first in the user message"


@pytest.mark.rule("roles-17")
@pytest.mark.parametrize(
    "messages",
    [
        ["Look.", assistant(use()), user(result(), result())],
        ["Look.", assistant(use(), use()), user(result())],
        ["Look.", assistant(use()), user(result()), assistant(use()), user(result())],
    ],
    ids=["two results", "twice in a message", "twice in a conversation"],
)
def test_a_request_and_its_result_are_one_each(ask: Asker, messages: list[object]) -> None:
    assert ask.create(*messages, tools=[tool()]).status == 400


@given(
    st.lists(
        st.one_of(
            st.none(),
            st.text(max_size=3),
            st.dictionaries(st.sampled_from(["role", "content", "clear_at"]), st.text(max_size=9)),
            st.fixed_dictionaries(
                {
                    "role": st.sampled_from(["user", "assistant", "system"]),
                    "content": st.lists(
                        st.one_of(
                            st.none(),
                            st.fixed_dictionaries(
                                {
                                    "type": st.sampled_from(
                                        ["text", "tool_use", "tool_result", "compaction", "x"]
                                    )
                                },
                                optional={
                                    "text": st.text(max_size=3),
                                    "id": st.sampled_from(["toolu_1", "toolu_2"]),
                                    "tool_use_id": st.sampled_from(["toolu_1", "toolu_2"]),
                                    "name": st.just("look"),
                                    "input": st.one_of(st.just({}), st.none()),
                                    "content": st.one_of(st.none(), st.text(max_size=3), st.just([None])),
                                },
                            ),
                        ),
                        max_size=4,
                    ),
                }
            ),
        ),
        max_size=5,
    )
)
def test_whatever_is_sent_is_answered_or_refused_and_never_breaks(messages: list[object]) -> None:
    import asyncio

    from sevenfold.core.canonical import canonical_bytes
    from sevenfold.simulator.exchange import MessagesExchange
    from sevenfold.simulator.load_brain import EchoBrain
    from sevenfold.simulator.simulator_state import SimulatorState

    world = SimulatorState(brain=EchoBrain())
    data = canonical_bytes({"model": "claude-opus-5", "max_tokens": 50, "messages": messages})
    served = asyncio.run(MessagesExchange(world).serve("messages", GOOD, data))
    assert served.status in {200, 400}
    assert world.failures == []


def test_a_tool_request_gets_an_id_that_can_be_answered(ask: Asker) -> None:
    def brain(prompt: Prompt) -> Reply:
        return say("Seen.") if prompt.results else say(calls={"look": {"at": "it"}})

    ask.sim.reset(brain)
    asked = ask.create("Look.", tools=[tool()])
    block = asked.content[0]
    assert asked.at("stop_reason") == "tool_use"
    done = ask.create(
        "Look.", assistant(plain(block)), user(result(str(asked.at("content", 0, "id")))), tools=[tool()]
    )
    assert done.at("content", 0, "text") == "Seen."
