"""Scripts: what they answer, and that they complain."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sevenfold.core.errors import CallUnexpected, FileMissing, ScriptError, StepsUnused
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import (
    Message,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    ToolUseId,
)
from sevenfold.simulator.brain import Purpose
from sevenfold.simulator.load_brain import parse_script, read_script
from sevenfold.testing import (
    ANY_TIMES,
    Match,
    Prompt,
    Reply,
    Script,
    Simulator,
    Step,
    load_brain,
    say,
    script,
)
from tests.simulator.asking import MODEL


def prompt(
    text: str = "Hi", *, purpose: Purpose = "reply", system: str = "", model: str = MODEL, number: int = 1
) -> Prompt:
    return Prompt(
        number=number,
        model=model,
        system=system,
        tools=("look",),
        messages=(Message("user", text),),
        max_tokens=100,
        purpose=purpose,
    )


def looked(content: str = "nothing") -> Prompt:
    uses = (ToolUse(ToolUseId("toolu_1"), "look", JsonObject()),)
    results = (ToolResult(ToolUseId("toolu_1"), content),)
    messages = (Message("user", "Look."), Message("assistant", uses), Message("user", results))
    return Prompt(number=1, model=MODEL, system="", tools=("look",), messages=messages, max_tokens=100)


def answer(brain: Script, asked: Prompt) -> Reply:
    return asyncio.run(brain.reply(asked))


def test_replies_come_in_order() -> None:
    brain = script("One.", say("Two.", think="Hm."), Step(say("Three.")))
    assert [answer(brain, prompt()).text for _ in range(3)] == ["One.", "Two.", "Three."]
    brain.check_done()


def test_a_request_too_many_is_refused() -> None:
    brain = script("One.")
    answer(brain, prompt())
    with pytest.raises(CallUnexpected, match=r"request 2 .* last text 'Hi'\. every step is used up"):
        answer(brain, prompt(number=2))


def test_steps_that_nobody_asked_for_are_told() -> None:
    brain = script("One.", Step(say("Two."), name="the second"), Step(say("Three."), times=2))
    answer(brain, prompt())
    with pytest.raises(StepsUnused, match=r"2 of 3 .* step 2 \(the second\) .* step 3 \(2 of 2 left\)"):
        brain.check_done()


@pytest.mark.parametrize(
    ("match", "fits", "not_this"),
    [
        (Match(text="bird"), prompt("Tell me of birds."), prompt("Tell me of fish.")),
        (Match(pattern=r"^\d+$"), prompt("42"), prompt("42 birds")),
        (Match(system="brief"), prompt(system="Be brief."), prompt(system="Be long.")),
        (Match(model=MODEL), prompt(), prompt(model="claude-haiku-4-5")),
        (Match(purpose="summary"), prompt(purpose="summary"), prompt()),
        (Match(result="nothing"), looked(), looked("a bird")),
        (Match(tool="look"), looked(), prompt()),
    ],
    ids=["text", "pattern", "system", "model", "purpose", "result", "tool"],
)
def test_a_step_answers_what_it_matches(match: Match, fits: Prompt, not_this: Prompt) -> None:
    brain = Script((Step(say("Yes."), match),))
    with pytest.raises(CallUnexpected, match="step 1 wants"):
        answer(brain, not_this)
    assert answer(brain, fits).text == "Yes."


def test_in_order_a_later_step_does_not_answer_early() -> None:
    steps = (Step(say("Birds."), Match(text="bird")), Step(say("Fish."), Match(text="fish")))
    with pytest.raises(CallUnexpected, match="step 1 wants text 'bird'"):
        answer(Script(steps), prompt("fish"))
    free = Script(steps, is_ordered=False)
    assert [answer(free, prompt(text)).text for text in ("fish", "bird")] == ["Fish.", "Birds."]
    free.check_done()


def test_a_step_may_be_asked_for_any_number_of_times() -> None:
    brain = Script((Step(say("Summary."), Match(purpose="summary"), ANY_TIMES), Step(say("Yes."), times=2)))
    brain_says = [
        answer(brain, prompt(purpose=purpose)).text for purpose in ("reply", "summary", "summary", "reply")
    ]
    assert brain_says == ["Yes.", "Summary.", "Summary.", "Yes."]
    brain.check_done()
    Script((Step(say("Never."), times=ANY_TIMES),)).check_done()


@pytest.mark.parametrize("times", [-1])
def test_a_step_of_fewer_than_no_times_is_refused(times: int) -> None:
    with pytest.raises(ScriptError):
        Script((Step(say("Yes."), times=times),))


def test_a_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(ScriptError, match="regular expression"):
        Match(pattern="(")


YAML = """
ordered: true
steps:
  - name: look first
    match: {text: bird, system: brief, model: claude-opus-5}
    think: I should look.
    text: Let me look.
    tools:
      - {name: look, input: {at: [tree, 1]}, id: toolu_mine}
      - name: walk
    usage: {output_tokens: 120}
  - match: {result: nothing}
    redacted: hidden
    text: There is none.
    stop_reason: refusal
  - match: {purpose: summary}
    text: They looked.
    times: any
"""


def test_a_script_is_read_from_yaml() -> None:
    first, second, third = parse_script(YAML).steps
    assert first.match == Match(text="bird", system="brief", model="claude-opus-5")
    assert first.reply.usage == {"output_tokens": 120}
    assert first.reply.blocks == (
        Thinking("I should look."),
        Text("Let me look."),
        ToolUse(ToolUseId("toolu_mine"), "look", JsonObject({"at": ("tree", 1)})),
        ToolUse(ToolUseId(""), "walk", JsonObject()),
    )
    assert second.reply.blocks == (RedactedThinking("hidden"), Text("There is none."))
    assert (second.reply.stop_reason, third.times, third.match.purpose) == ("refusal", ANY_TIMES, "summary")
    assert parse_script("- text: Yes.").steps == (Step(say("Yes.")),)
    assert not parse_script("{ordered: false, steps: []}").is_ordered


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- text: [", "not YAML"),
        ("text: Yes.", "'text' is unknown"),
        ("5", "expected a list of steps"),
        ("- Yes.", "step 1: expected fields"),
        ("- say: Yes.", "step 1: 'say' is unknown; expected some of name, match"),
        ("- text: 5", "step 1.text: expected text"),
        ("- {text: a, tools: look}", "step 1.tools: expected a list"),
        ("- {text: a, tools: [look]}", "step 1.tools.0: expected fields"),
        ("- {text: a, tools: [{input: {}}]}", "step 1.tools.0.name: expected text"),
        ("- {text: a, match: bird}", "step 1.match: expected fields"),
        ("- {text: a, match: {texts: bird}}", "step 1.match: 'texts' is unknown"),
        ("- {text: a, match: {purpose: joke}}", "step 1.match.purpose: 'joke' is unknown"),
        ("- {text: a, usage: {tokens: 1}}", "step 1.usage: 'tokens' is unknown"),
        ("- {text: a, usage: {output_tokens: -1}}", "step 1.usage.output_tokens: expected a count"),
        ("- {text: a, usage: {output_tokens: 5, thinking_tokens: 6}}", "thinking_tokens: 6 is more than"),
        ("- {text: a, times: 0}", "step 1.times: expected 1 or more, or any"),
        ("- text: a\n- text: 2026-01-01", "not YAML that can be read: [1].text: a date is no JSON value"),
        ("- {text: a, stop_reason: done}", "step 1: stop_reason 'done' is unknown; expected one of end_turn"),
        ("- text: a\n  text: b", "the key 'text' stands twice in the fields that begin on line 1"),
        (
            "- text: a\n- tools:\n  - {name: x, name: y}",
            "the key 'name' stands twice in the fields that begin",
        ),
        ("- text: a\n- {text: b, match: {pattern: (}}", "step 2.match.pattern '(' is no regular expression"),
        ("- {}", "step 1: answers nothing; give it some of think, redacted, text, tools, stop_reason"),
        ("- {name: x, match: {text: a}}", "step 1: answers nothing"),
    ],
)
def test_a_mistake_in_a_script_names_its_place(text: str, told: str) -> None:
    with pytest.raises(ScriptError) as caught:
        parse_script(text, "talk.yaml")
    assert str(caught.value).startswith("talk.yaml: ")
    assert told in str(caught.value)


def test_a_script_file_plays_over_http(tmp_path: Path) -> None:
    path = tmp_path / "talk.yaml"
    path.write_text("- {match: {text: bird}, text: They fly.}\n- text: So they say.\n", encoding="utf-8")
    with Simulator(load_brain(str(path))) as sim:
        client = sim.client()
        said = [
            client.messages.create(model=MODEL, max_tokens=99, messages=[{"role": "user", "content": text}])
            for text in ("And birds?", "Truly?")
        ]
    assert [message.content[0].to_dict()["text"] for message in said] == ["They fly.", "So they say."]


def test_a_script_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileMissing, match=r"talk\.yaml"):
        read_script(tmp_path / "talk.yaml")


@pytest.mark.parametrize("name", ["parrot", "talk.txt", ""])
def test_an_unknown_brain_is_told(name: str) -> None:
    with pytest.raises(ScriptError, match="expected echo, a script"):
        load_brain(name)


def test_a_script_that_is_not_utf8_says_where(tmp_path: Path) -> None:
    path = tmp_path / "talk.yaml"
    path.write_bytes("- text: Yes.\n- text: Café.\n".encode("latin-1"))
    with pytest.raises(ScriptError, match=r"talk\.yaml: line 2 is not UTF-8 \(byte 0xe9\); save the file"):
        read_script(path)
    path.write_bytes("\ufeff- text: Café.\n".encode())
    assert read_script(path).steps[0].reply.text == "Café."


def test_a_stop_reason_that_no_answer_has_is_refused() -> None:
    with pytest.raises(
        ScriptError, match=r"step 2 \(end\): stop_reason 'done' is unknown; expected one of end"
    ):
        script("Yes.", Step(Reply((), "done"), name="end"))
    assert parse_script("- stop_reason: refusal").steps[0].reply == Reply((), "refusal")
