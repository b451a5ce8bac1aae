"""A recorded session given again."""

from __future__ import annotations

import json
from pathlib import Path

import anthropic
import pytest

from sevenfold.core.errors import CallUnexpected, FileMissing, ScriptError
from sevenfold.testing import Choices, Simulator, load_brain
from tests.simulator.asking import Asker, assistant, reply, result, tool, use, user

LINES: list[object] = [
    {"role": "user", "content": "Look at home.", "meta": {"uuid": "1"}},
    {
        **assistant(
            {"type": "thinking", "thinking": "Where?", "signature": "RXJ"}, "I look.", use("toolu_a")
        ),
        "meta": {},
    },
    user(result("toolu_a", "Nothing.")),
    assistant("Nothing there."),
    {"type": "progress", "note": "no message"},
    {"role": "user", "content": "And at work?"},
    {"message": assistant("Nothing there.")},
    user("So?"),
    assistant("So nothing."),
]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join([*(json.dumps(line) for line in LINES), '{"role": "assi']), encoding="utf-8")
    return path


def test_answers_follow_what_the_request_holds(ask: Asker, recording: Path) -> None:
    ask.sim.reset(load_brain(str(recording)))
    fields: dict[str, object] = {"tools": [tool()]}
    first = ask.create("Look at home.", **fields)
    assert first.kinds == ["thinking", "text", "tool_use"]
    assert first.at("content", 2, "id") == "toolu_a"
    said: list[object] = ["Look at home.", reply(first), user(result("toolu_a", "Nothing."))]
    second = ask.create(*said, **fields)
    assert second.at("content", 0, "text") == "Nothing there."
    said += [reply(second), "And at work?"]
    third = ask.create(*said, **fields)
    assert third.at("content", 0, "text") == "Nothing there."
    said += [reply(third), "So?"]
    assert ask.create(*said, **fields).at("content", 0, "text") == "So nothing."


def test_asking_again_gives_the_same_again(ask: Asker, recording: Path) -> None:
    ask.sim.reset(load_brain(str(recording)))
    said: list[object] = ["Look.", assistant("I look.", use("toolu_a")), user(result("toolu_a"))]
    texts = [ask.create(*said, tools=[tool()]).at("content", 0, "text") for _ in range(3)]
    assert texts == ["Nothing there."] * 3


def test_after_a_cut_the_next_answer_follows(ask: Asker, recording: Path) -> None:
    ask.sim.reset(load_brain(str(recording)))
    ask.create("Look at home.", tools=[tool()])
    cut = ask.create("They looked at home.", tools=[tool()])
    assert cut.at("content", 0, "text") == "Nothing there."


def test_a_recording_ends(running: Simulator, recording: Path) -> None:
    running.reset(load_brain(str(recording)), choices=Choices(opens_with_user=False))
    client = running.client(max_retries=0)
    with pytest.raises(anthropic.InternalServerError, match="asks for answer 5, and the recording has 4"):
        client.messages.create(
            model="claude-opus-5",
            max_tokens=99,
            messages=[
                {"role": "user", "content": "x"},
                {"role": "assistant", "content": "So nothing."},
                {"role": "user", "content": "More?"},
            ],
        )
    with pytest.raises(CallUnexpected):
        running.check()


def test_a_recording_summarises(ask: Asker, recording: Path) -> None:
    ask.sim.reset(load_brain(str(recording)))
    answer = ask.create("Hi", betas=["compact-2026-09-04"], compaction={"type": "summarize"})
    assert answer.at("content", 0, "content") == "The session so far, of 1 messages."


def test_a_file_without_answers_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text('{"role": "user", "content": "Hi"}\nnot json\n[]\n', encoding="utf-8")
    with pytest.raises(
        ScriptError, match="holds no answer of a model; expected a transcript of Claude Code, a Codex"
    ):
        load_brain(str(path))
    with pytest.raises(FileMissing):
        load_brain(str(tmp_path / "nowhere.jsonl"))


CLAUDE: list[object] = [
    {"type": "user", "sessionId": "s", "uuid": "1", "message": {"role": "user", "content": "Look."}},
    *(
        {
            "type": "assistant",
            "sessionId": "s",
            "uuid": f"2{at}",
            "message": {"id": "msg_1", "model": "claude-opus-5", **assistant(block)},
        }
        # One line a block; a resumed session repeats lines.
        for at, block in ((0, "I look."), (1, use("toolu_a")), (1, use("toolu_a")))
    ),
    {"type": "user", "sessionId": "s", "uuid": "3", "message": user(result("toolu_a", "Nothing."))},
    {
        "type": "assistant",
        "sessionId": "s",
        "uuid": "4",
        "message": {"id": "msg_2", "model": "claude-opus-5", **assistant("Nothing there.")},
    },
]
CODEX: list[object] = [
    {"type": "session_meta", "payload": {"id": "s", "cwd": "/srv"}},
    *(
        {"type": "response_item", "payload": payload}
        for payload in (
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Look."}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "name": "look", "arguments": "{}", "call_id": "toolu_a"},
        )
    ),
    *(
        {"type": "response_item", "payload": payload}
        for payload in (
            {"type": "function_call_output", "call_id": "toolu_a", "output": "Nothing."},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Nothing there."}],
            },
        )
    ),
]


@pytest.mark.parametrize("lines", [CLAUDE, CODEX], ids=["claude code", "codex"])
def test_the_transcripts_of_other_agents_are_given_again(
    ask: Asker, tmp_path: Path, lines: list[object]
) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n", encoding="utf-8")
    ask.sim.reset(load_brain(str(path)))
    first = ask.create("Look.", tools=[tool()])
    assert first.kinds == ["text", "tool_use"]
    second = ask.create("Look.", reply(first), user(result("toolu_a", "Nothing.")), tools=[tool()])
    assert [second.at("content", at, "text") for at in (0, 1)] == ["Nothing there.", None]
