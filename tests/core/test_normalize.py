"""Whatever a history holds, what is sent is taken; what was in order is not touched; what was shown stays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import (
    Block,
    Compaction,
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
)
from sevenfold.core.models import MODELS, Model
from sevenfold.core.normalize import (
    CONTINUE_TEXT,
    LOST_RESULT,
    NO_OPENING,
    NO_REPLY,
    NO_SOURCE,
    MessageNormalizer,
    NormalizedMessages,
    NormalizeRules,
    Repair,
)
from tests.core.histories import HISTORIES, SOURCE, Api, is_encodable, open_api, rules_of
from tests.examples import up_to

every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
TAKES = NormalizeRules(takes_system_role=True)


def flatten(messages: Sequence[Message], rules: NormalizeRules | None = None) -> NormalizedMessages:
    """A whole history at once."""
    flattener = MessageNormalizer(rules)
    body, end = flattener.add(messages), flattener.finish()
    return NormalizedMessages(
        (*body.messages, *end.messages), (*body.sources, *end.sources), (*body.repairs, *end.repairs)
    )


def user(*content: Block | str) -> Message:
    return message("user", *content)


def assistant(*content: Block | str) -> Message:
    return message("assistant", *content)


def system(*content: Block | str) -> Message:
    return message("system", *content)


def message(role: Role, *content: Block | str) -> Message:
    return Message(role, tuple(Text(item) if isinstance(item, str) else item for item in content))


def use(name: str) -> ToolUse:
    return ToolUse(ToolUseId(name), "look", JsonObject({"at": name}))


def result(name: str, text: str = "seen") -> ToolResult:
    return ToolResult(ToolUseId(name), text)


def lost(*names: str) -> Message:
    return Message("user", tuple(ToolResult(ToolUseId(name), LOST_RESULT, is_error=True) for name in names))


def kinds(flattened: NormalizedMessages) -> list[str]:
    return [repair.kind for repair in flattened.repairs]


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with open_api() as opened:
        yield opened


@every_model
# Of each of all the models.
@settings(max_examples=8)
@given(history=HISTORIES)
def test_what_comes_out_is_taken_by_every_model(api: Api, model: Model, history: list[Message]) -> None:
    found = flatten(history, rules_of(model))
    assert api.refusal(found.messages, model) is None
    assert all(map(is_encodable, found.messages))
    again = flatten(found.messages, rules_of(model))
    assert again.messages == found.messages
    assert again.repairs == ()


@given(history=HISTORIES, model=st.sampled_from(MODELS))
def test_what_the_api_takes_already_is_not_touched(history: list[Message], model: Model) -> None:
    taken = flatten(history, rules_of(model)).messages
    found = flatten(taken, rules_of(model))
    assert all(one is other for one, other in zip(found.messages, taken, strict=True))
    assert found.sources == tuple(range(len(taken)))


@settings(max_examples=up_to(50))
@given(
    history=HISTORIES,
    sends=st.lists(st.booleans(), min_size=12, max_size=12),
    model=st.sampled_from(MODELS),
)
def test_portions_make_no_difference_and_every_request_on_the_way_is_taken(
    api: Api, history: list[Message], sends: list[bool], model: Model
) -> None:
    whole = MessageNormalizer(rules_of(model)).add(history)
    parts = MessageNormalizer(rules_of(model))
    made = [parts.add([message]) for message in history]
    assert tuple(item for part in made for item in part.messages) == whole.messages
    assert tuple(item for part in made for item in part.repairs) == whole.repairs
    asked, shown = MessageNormalizer(rules_of(model)), list[Message]()
    for message, is_sent in zip(history, sends, strict=False):
        shown += asked.add([message]).messages
        if is_sent:
            shown += asked.finish().messages
            assert api.refusal(shown, model) is None
            assert asked.finish().messages == ()


@dataclass(frozen=True, slots=True)
class Case:
    history: tuple[Message, ...]
    shown: tuple[Message, ...]
    kinds: tuple[str, ...]
    rules: NormalizeRules = TAKES


ASK = user("Look.")
CASES: dict[str, Case] = {
    "a call without its result": Case(
        (ASK, assistant(use("a")), user("Stop.")),
        (ASK, assistant(use("a")), lost("a"), user("Stop.")),
        ("lost result",),
    ),
    "one of two results is missing": Case(
        (ASK, assistant(use("a"), use("b")), user(result("b"), "And?")),
        (ASK, assistant(use("a"), use("b")), lost("a"), user(result("b"), "And?")),
        ("lost result",),
    ),
    "results in two messages": Case(
        (ASK, assistant(use("a"), use("b")), user(result("b")), user(result("a"))),
        (ASK, assistant(use("a"), use("b")), user(result("b")), user(result("a"))),
        (),
    ),
    "a crash between two results": Case(
        (ASK, assistant(use("a"), use("b")), user(result("b")), assistant("Hm."), user("?")),
        (ASK, assistant(use("a"), use("b")), user(result("b")), lost("a"), assistant("Hm."), user("?")),
        ("lost result",),
    ),
    "a result of nothing": Case(
        (user(result("x", "out of nowhere")),),
        (user("[Result of a tool call that is not open, x]\nout of nowhere"),),
        ("stray result",),
    ),
    "an empty result of nothing": Case(
        (user(ToolResult(ToolUseId("x"), None)),),
        (user("[Result of a tool call that is not open, x; it is empty]"),),
        ("stray result",),
    ),
    "a result after the words": Case(
        (ASK, assistant(use("a")), user("Here:", result("a"))),
        (ASK, assistant(use("a")), user(result("a"), "Here:")),
        ("result order",),
    ),
    "the same call twice": Case(
        (ASK, assistant(use("a")), user(result("a")), assistant(use("a")), user(result("a", "again"))),
        (
            ASK,
            assistant(use("a")),
            user(result("a")),
            assistant(ToolUse(ToolUseId("a_2"), "look", use("a").input)),
            user(result("a_2", "again")),
        ),
        ("same id",),
    ),
    "the same call twice in one message": Case(
        (ASK, assistant(use("a"), use("a")), user(result("a"), result("a"))),
        (
            ASK,
            assistant(use("a"), ToolUse(ToolUseId("a_2"), "look", use("a").input)),
            user(result("a"), result("a_2")),
        ),
        ("same id",),
    ),
    "two assistants in a row": Case(
        (ASK, assistant("One."), assistant("Two."), user("?")),
        (ASK, assistant("One."), assistant("Two."), user("?")),
        (),
    ),
    "the assistant first": Case(
        (assistant("Hello."), user("?")), (user(NO_OPENING), assistant("Hello."), user("?")), ("opening",)
    ),
    "a summary first": Case(
        (assistant(Compaction("In short.")), user("?")), (assistant(Compaction("In short.")), user("?")), ()
    ),
    "the assistant last": Case(
        (ASK, assistant("So.")), (ASK, assistant("So."), user(CONTINUE_TEXT)), ("ending",)
    ),
    "the assistant last, where it may be": Case(
        (ASK, assistant("So")), (ASK, assistant("So")), (), NormalizeRules(takes_prefill=True)
    ),
    "nothing at all": Case(
        (user(""), assistant()), (user(NO_OPENING),), ("block", "empty", "empty", "opening")
    ),
    "a system message in its place": Case(
        (ASK, system("Note."), assistant("Ok."), user("?")),
        (ASK, system("Note."), assistant("Ok."), user("?")),
        (),
    ),
    "a system message at the end": Case((ASK, system("Note.")), (ASK, system("Note.")), ()),
    "a system message after a call": Case(
        (ASK, assistant(use("a")), system("Note."), user(result("a"))),
        (ASK, assistant(use("a")), user(result("a")), user("Note.")),
        ("system",),
    ),
    "a system message before a user's": Case(
        (ASK, system("Note."), user("And?")), (ASK, user("Note."), user("And?")), ("system",)
    ),
    "a system message first": Case((system("Note."), ASK), (user("Note."), ASK), ("system",)),
    "a system message on a model without": Case(
        (ASK, system("Note."), assistant("Ok."), user("?")),
        (ASK, user("Note."), assistant("Ok."), user("?")),
        ("system",),
        NormalizeRules(),
    ),
    "a system message after a server's result": Case(
        (ASK, assistant(Opaque(JsonObject({"type": "web_search_tool_result"}))), system("Note.")),
        (ASK, assistant(Opaque(JsonObject({"type": "web_search_tool_result"}))), system("Note.")),
        (),
    ),
    "thinking that nobody signed": Case(
        (ASK, assistant(Thinking("hm"), "So."), user("?")), (ASK, assistant("So."), user("?")), ("block",)
    ),
    "thinking in a user's message": Case((user(RedactedThinking("x"), "So."),), (user("So."),), ("block",)),
    "a picture by the assistant": Case(
        (ASK, assistant(Image(SOURCE), Document(SOURCE)), user("?")),
        (ASK, assistant("[image]", "[document]"), user("?")),
        ("block", "block"),
    ),
    "a call by the user": Case(
        (user(use("a")),),
        (user('[tool_use: {"type":"tool_use","id":"a","name":"look","input":{"at":"a"}}]'),),
        ("block",),
    ),
    "half a character": Case((user("half \ud83d"),), (user("half \ufffd"),), ("text",)),
    "a field of its own": Case(
        (Message("user", (Text("Hi."),), JsonObject({"id": "m"})),), (user("Hi."),), ("fields",)
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_kind_of_wrong_has_its_repair(name: str) -> None:
    case = CASES[name]
    found = flatten(case.history, case.rules)
    assert [Message(item.role, item.blocks, item.extra) for item in found.messages] == [
        Message(item.role, item.blocks, item.extra) for item in case.shown
    ]
    assert tuple(kinds(found)) == case.kinds


def test_a_call_at_the_end_is_open_until_a_request_is_sent() -> None:
    flattener = MessageNormalizer(TAKES)
    assert kinds(flattener.add([ASK, assistant(use("a"))])) == []
    assert flattener.add([user(result("a"))]).messages == (user(result("a")),)
    flattener.add([assistant(use("b"))])
    assert flattener.finish().messages == (lost("b"),)
    late = flattener.add([user(result("b", "too late"))])
    assert late.messages == (user("[Result of a tool call that is not open, b]\ntoo late"),)


def test_a_reply_that_never_came_is_said_after_a_system_message() -> None:
    flattener = MessageNormalizer(TAKES)
    flattener.add([ASK, system("Note.")])
    assert flattener.finish().messages == (system("Note."),)
    assert flattener.add([user("Hello?")]).messages == (assistant(NO_REPLY), user("Hello?"))


def test_repairs_say_where_and_sources_say_what_is_shown() -> None:
    found = flatten((ASK, assistant(use("a")), user("Stop.")), TAKES)
    assert found.repairs == (Repair(2, "lost result", "a"),)
    assert found.sources == (0, 1, NO_SOURCE, 2)


def test_a_stray_result_keeps_its_pictures() -> None:
    inner = (Text(""), Image(SOURCE), Opaque(JsonObject({"type": "tool_reference", "tool_name": "x"})))
    found = flatten((user(ToolResult(ToolUseId("x"), inner)),))
    assert found.messages[0].blocks == (
        Text("[Result of a tool call that is not open, x]"),
        Image(SOURCE),
        Text('[tool_reference: {"type":"tool_reference","tool_name":"x"}]'),
    )


def test_what_is_no_part_of_the_history_stands_before_the_last_system_messages() -> None:
    flattener = MessageNormalizer(TAKES)
    shown = flattener.add([ASK, assistant("done"), system("Note.")]).messages
    added = flattener.add_before_system(user("A reminder.")).messages
    assert (*shown, *added) == (ASK, assistant("done"), user("A reminder."))
    assert flattener.finish().messages == (system("Note."),)
