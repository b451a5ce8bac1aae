"""Which stored session a list of messages continues: one whose whole history is in the list, or none."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from sevenfold.core.json import JsonObject, freeze
from sevenfold.core.messages import Message, Text, Thinking, ToolResult, ToolUse, ToolUseId
from sevenfold.core.requests import RequestParams
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.session import earlier
from sevenfold.session.earlier import EarlierSession, find_earlier_session
from sevenfold.session.session import Session
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.transcript import SessionId
from tests.session.talk import FRAME, reply

LONG = "a line of the log\n" * 6_000
STORY = "words of a story " * 4_000


def user(text: str) -> Message:
    return Message("user", text)


def said(text: str) -> Message:
    return Message("assistant", (Text(text),))


def calls(number: int, command: str = "make") -> Message:
    use = ToolUse(ToolUseId(f"t{number}"), "Bash", JsonObject({"command": command}))
    return Message("assistant", (Thinking("Hm.", "signed"), Text("I look."), use))


def result(number: int, text: str) -> Message:
    return Message("user", (ToolResult(ToolUseId(f"t{number}"), text),))


@dataclass
class Caller:
    """Keeps a list of its own, and has sessions written of it."""

    home: Path
    frame: RequestParams = FRAME
    messages: list[Message] = field(default_factory=list[Message])
    _numbers: int = 0

    def run(self, *turns: tuple[Message, Message], compacts: bool = False, session: str | None = None) -> str:
        """A process: each turn is what the caller adds and what the model answers. The session's name."""

        async def talk() -> str:
            async with await self.open(session) as opened:
                for added, answer in turns:
                    self.messages.append(added)
                    await opened.prepare(self.messages, frame=self.frame)
                    self._numbers += 1
                    await opened.record(reply(answer, self._numbers))
                    self.messages.append(answer)
                if compacts:
                    await opened.compact()
                return opened.id

        return asyncio.run(talk())

    async def open(self, session: str | None) -> Session:
        (self.home / "work").mkdir(exist_ok=True)
        return await Session.open(
            self.frame,
            project=self.home / "work",
            session=session,
            provider=ScriptedProvider([make_response("<summary>They talked.</summary>")] * 3),
            environ={"HOME": str(self.home)},
            settings={"context": {"enabled": False}, "recall": {"enabled": False}},
        )

    def find(self, messages: Sequence[object] | None = None) -> str | None:
        (folder,) = self.home.glob(".sevenfold/projects/*/sessions")
        with Folder.open(folder) as sessions:
            found = find_earlier_session(
                sessions, self.messages if messages is None else messages, self.frame
            )
        return found.id if found else None


@pytest.fixture
def caller(tmp_path: Path) -> Caller:
    return Caller(tmp_path)


TALK = ((user("one"), said("first")), (user("two"), said("second")), (user("three"), said("third")))
WORK = ((user("Fix it."), calls(1)), (result(1, LONG), calls(2)), (result(2, "ok"), said("Done.")))


@pytest.mark.parametrize("turns", [TALK, WORK])
def test_a_list_with_the_whole_history_finds_its_session(
    caller: Caller, turns: tuple[tuple[Message, Message], ...]
) -> None:
    name = caller.run(*turns)
    assert caller.find() == name
    assert caller.find([*caller.messages, user("and now?")]) == name


def test_a_list_in_wire_form_without_thinking_finds_its_session(caller: Caller) -> None:
    name = caller.run(*WORK)
    wire: list[object] = [
        {"role": "user", "content": "Fix it."},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": LONG}]},
    ]
    rest = caller.messages[3:]
    assert caller.find([*wire, *rest]) == name
    assert caller.find([*wire, {"role": "nobody"}, *rest]) is None


def test_the_last_answer_may_be_lost_and_no_earlier_one(caller: Caller) -> None:
    name = caller.run(*TALK)
    assert caller.find([*caller.messages[:-2], user("three")]) == name
    assert caller.find(caller.messages[:-2]) is None
    assert caller.find([*caller.messages[:-4], user("another way")]) is None


@pytest.mark.parametrize("place", range(6))
def test_one_other_message_anywhere_is_another_conversation(caller: Caller, place: int) -> None:
    caller.run(*TALK)
    changed = list(caller.messages)
    changed[place] = Message(changed[place].role, (Text("something else"),))
    assert caller.find([*changed, user("go on")]) is None


def test_a_list_without_an_answer_or_with_a_silent_one_finds_nothing(caller: Caller) -> None:
    caller.run(*TALK)
    assert caller.find([]) is None
    assert caller.find([user("one")]) is None
    assert caller.find([user("one"), Message("assistant", (Thinking("Hm.", "signed"),))]) is None


def test_another_call_with_the_same_words_is_another_conversation(caller: Caller) -> None:
    caller.run(*WORK)
    changed = [*caller.messages]
    changed[1] = calls(1, "make clean")
    assert caller.find(changed) is None
    changed[1] = caller.messages[1]
    changed[2] = result(1, LONG.replace("log", "list"))
    assert caller.find(changed) is None


def test_another_model_prompt_or_tool_list_asks_for_a_session_of_its_own(caller: Caller) -> None:
    name = caller.run(*TALK)
    assert caller.find() == name
    tool = JsonObject({"name": "Bash", "input_schema": freeze({"type": "object"})})
    for changed in (
        replace(FRAME, model="claude-opus-4-5"),
        replace(FRAME, system="You review."),
        replace(FRAME, tools=(tool,)),
    ):
        caller.frame = changed
        assert caller.find() is None
    caller.frame = replace(FRAME, max_tokens=77)
    assert caller.find() == name


def test_of_two_sessions_with_the_same_history_none_is_taken(caller: Caller) -> None:
    caller.run(*TALK)
    caller.messages.clear()
    caller.run(*TALK)
    assert caller.find() is None


def test_a_compacted_session_is_found_by_all_that_was_said(caller: Caller) -> None:
    turns = [(user(f"{number} {STORY}"), said(f"noted {number}")) for number in range(6)]
    name = caller.run(*turns, compacts=True)
    assert caller.find() == name
    assert caller.find([*caller.messages, user("go on")]) == name
    changed = [user("another beginning"), *caller.messages[1:]]
    assert caller.find(changed) is None
    assert caller.find(caller.messages[2:]) is None
    assert caller.run((user("go on"), said("I do.")), session=name) == name
    assert caller.find() == name
    assert caller.find(changed) is None


def test_an_answer_that_the_caller_replaced_does_not_count(caller: Caller) -> None:
    caller.run(*TALK[:2])
    caller.messages[-1] = said("in the caller's own words")
    (folder,) = caller.home.glob(".sevenfold/projects/*/sessions/*.jsonl")
    caller.run((user("three"), said("third")), session=folder.stem)
    assert caller.find() == folder.stem
    caller.messages[3] = said("second")
    assert caller.find() is None


def test_the_newest_sessions_alone_are_looked_at(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    caller.run(*TALK)
    old, caller.messages = caller.messages, []
    new = caller.run((user("else"), said("other")))
    monkeypatch.setattr(earlier, "MAX_SESSIONS", 1)
    assert caller.find() == new
    assert caller.find(old) is None


def test_an_answer_with_more_behind_it_than_is_looked_at_is_not_found(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = caller.run(*TALK)
    assert caller.find() == name
    monkeypatch.setattr(earlier, "TAIL_BYTES", 5)
    assert caller.find() is None


def test_a_session_that_grew_or_is_gone_has_changed(caller: Caller) -> None:
    name = caller.run(*TALK)
    (path,) = caller.home.glob(".sevenfold/projects/*/sessions/*.jsonl")
    with Folder.open(path.parent) as sessions:
        found = find_earlier_session(sessions, caller.messages, caller.frame)
        assert found is not None
        assert found == EarlierSession(SessionId(name), path.stat().st_size)
        assert found.is_unchanged(sessions)
        with path.open("ab") as file:
            file.write(b"\n")
        assert not found.is_unchanged(sessions)
        path.unlink()
        assert not found.is_unchanged(sessions)
