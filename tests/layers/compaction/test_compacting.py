"""What becomes of a session's view when it is compacted, again and again, in part, and across restarts."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from anthropic import AsyncAnthropic

from sevenfold.core.clock import ManualClock
from sevenfold.core.events import ResultSpilled
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Image, Message, Text, write_message
from sevenfold.core.requests import PreparedRequest, RequestParams
from sevenfold.layers.compaction.job import Part
from sevenfold.layers.session_notes.notes_file import NotesFile
from sevenfold.layers.session_notes.writer import NotesWriter
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.session.blocking import BlockingSession
from sevenfold.session.session import Session
from sevenfold.store.files.folder import Folder
from sevenfold.testing import Prompt, Simulator
from tests.session.talk import FRAME, Listener, call, result

SUMMARY = "<summary>" + "What was done in the later part, at some length. " * 6 + "</summary>"


def step(session: BlockingSession, number: int, text: str = "line\n" * 300, *, tokens: int = 2_000) -> None:
    session.prepare()
    session.record(call(number, "Read", tokens, file_path=f"/src/{number}.py"))
    session.history.append(result(number, text))


def wires(messages: list[Message]) -> list[dict[str, object]]:
    return [write_message(message) for message in messages]


def words(session: BlockingSession) -> str:
    messages = session.prepare().request.messages
    return "\n".join(
        block.text for message in messages for block in message.blocks if isinstance(block, Text)
    )


@pytest.mark.moves_prefix(reason="summaries are asked for by hand, from views that were never sent")
def test_a_part_from_some_message_on_leaves_the_beginning_as_it_was(tmp_path: Path) -> None:
    provider = ScriptedProvider(by_purpose={"summary": [make_response(SUMMARY)]})
    with BlockingSession.open(
        FRAME, project=tmp_path, environ={"HOME": str(tmp_path)}, provider=provider, settings=NO_NOTES
    ) as session:
        session.history.append(Message("user", "FIRST WISH of the user"))
        for number in range(6):
            step(session, number, tokens=2_000 * (number + 1))
        before = session.prepare().request.messages
        session.compact(part=Part("from", 5))
        after = session.prepare()
        assert after.request.messages[:4] == before[:4]
        assert [cut.first > 0 for cut in after.cuts] == [True]
        name, sent = session.id, after.request.messages
    with BlockingSession.open(
        FRAME, project=tmp_path, session=name, environ={"HOME": str(tmp_path)}, settings=NO_NOTES
    ) as again:
        assert again.prepare().request.messages == sent
        again.compact()
        assert "FIRST WISH" in words(again)


@pytest.mark.moves_prefix(reason="a summary is asked for by hand, from a view that was never sent")
def test_a_stored_result_that_a_summary_left_is_known_after_a_restart(tmp_path: Path) -> None:
    provider = ScriptedProvider(by_purpose={"summary": [make_response(SUMMARY)]})
    environ, said = {"HOME": str(tmp_path)}, [Message("user", "Mend it.")]
    with BlockingSession.open(
        FRAME, project=tmp_path, environ=environ, provider=provider, settings=NO_NOTES
    ) as session:
        for number in range(6):
            session.prepare(wires(said))
            reply = call(number, "Bash", 2_000 * (number + 1))
            session.record(reply)
            said += [reply.message, result(number, "line\n" * (20_000 if number == 0 else 300))]
        session.prepare(wires(said))
        session.compact(part=Part("from", 5))
        sent = session.prepare(wires(said)).request.messages
    with BlockingSession.open(
        FRAME, project=tmp_path, session=session.id, environ=environ, settings=NO_NOTES
    ) as again:
        # The caller has the whole result, and the view a preview of it.
        view = again.prepare(wires(said))
        assert view.request.messages == sent
        assert not view.cuts


@pytest.mark.moves_prefix(reason="a summary is asked for by hand, from a view that was never sent")
def test_a_users_own_summary_prompt_is_what_the_model_is_asked(tmp_path: Path) -> None:
    provider = ScriptedProvider(by_purpose={"summary": [make_response(SUMMARY)]})
    templates = tmp_path / ".sevenfold/templates"
    templates.mkdir(parents=True)
    (templates / "summary.md").write_text("Sum it up as a poem{scope}.", encoding="utf-8")
    with BlockingSession.open(
        FRAME, project=tmp_path, environ={"HOME": str(tmp_path)}, provider=provider, settings=NO_NOTES
    ) as session:
        session.history.append(Message("user", "Mend it."))
        for number in range(6):
            step(session, number, tokens=2_000 * (number + 1))
        session.compact()
    assert "Sum it up as a poem." in str(provider.requests[-1].messages[-1])


@pytest.mark.parametrize("by_notes", [True, False], ids=["notes", "structural"])
def test_the_users_words_stand_once_and_word_for_word_through_compactions(
    tmp_path: Path, *, by_notes: bool
) -> None:
    notes = {"first_update_tokens": 500, "growth_tokens": 500, "keep_tokens": 500, "keep_messages": 1}
    settings = {"notes": {**notes, "compaction_enabled": by_notes}, "microcompact": {"policy": "keep"}}
    wishes = [f"Wish {number}: mend module {number},\nand run its tests twice" for number in range(6)]
    with BlockingSession.open(
        FRAME, project=tmp_path, environ={"HOME": str(tmp_path)}, settings=settings
    ) as session:
        for number, wish in enumerate(wishes):
            session.history.append(Message("user", wish))
            for at in range(2):
                step(session, 2 * number + at, tokens=900 * (2 * number + at + 1))
            if number in (2, 4):
                assert session.compact().rung == ("notes" if by_notes else "structural")
        session.prepare()
        session.compact()
        text = words(session)
    assert [text.count(wish) for wish in wishes] == [1] * len(wishes)


def test_a_long_message_is_stored_and_told_once_however_many_rungs_are_tried(tmp_path: Path) -> None:
    heard = Listener()
    provider = ScriptedProvider(
        by_purpose={"summary": [make_response("no summary"), make_response("none either")]}
    )
    notes = {"first_update_tokens": 500, "growth_tokens": 500, "compaction_enabled": False}
    with BlockingSession.open(
        FRAME,
        project=tmp_path,
        environ={"HOME": str(tmp_path)},
        provider=provider,
        settings={"notes": notes, "microcompact": {"policy": "keep"}},
        emit=heard,
    ) as session:
        session.history.append(Message("user", "a line of what was pasted\n" * 2_000))
        for number in range(4):
            step(session, number, tokens=2_000 * (number + 8))
        assert session.compact().rung in ("structural", "clip")
    said = [event for event in heard.events if isinstance(event, ResultSpilled)]
    assert len(said) == 1


NO_NOTES = {"notes": {"compaction_enabled": False}, "microcompact": {"policy": "keep"}}


def test_compacted_twice_in_a_row_a_session_comes_back_with_the_last_summary_alone(tmp_path: Path) -> None:
    with BlockingSession.open(FRAME, project=tmp_path, environ={"HOME": str(tmp_path)}) as session:
        session.history.append(Message("user", "go on"))
        number = 0
        for _ in range(3):
            for _ in range(4):
                step(session, number)
                number += 1
            session.compact()
        name, sent = session.id, session.prepare().request.messages
    with BlockingSession.open(
        FRAME, project=tmp_path, session=name, environ={"HOME": str(tmp_path)}
    ) as again:
        assert again.prepare().request.messages == sent
        assert words(again).count("<session-summary") == 1


PNG = JsonObject({"type": "base64", "media_type": "image/png", "data": "aGk="})


@pytest.mark.parametrize("model", ["claude-opus-5", "claude-opus-4-8"])
def test_a_summary_reads_the_cache_also_where_the_first_image_is_still_to_be_sent(model: str) -> None:
    settings = {
        **NO_NOTES,
        "models": {model: {"window_tokens": 100_000}},
        "compact": {"blocks_enabled": False},
    }
    asked = RequestParams(model=model, max_tokens=1_000, system="You look. " * 500)

    def brain(prompt: Prompt) -> str:
        return SUMMARY if prompt.purpose == "summary" or "<summary>" in prompt.last_text else "Well."

    async def work(client: AsyncAnthropic) -> PreparedRequest:
        provider = AnthropicProvider(client)
        async with await Session.open(asked, project=None, provider=provider, settings=settings) as session:
            for _ in range(5):
                session.history.append(Message("user", "word " * 9_000))
                view = await session.prepare()
                await session.record(await provider.send(view.request))
            session.history.append(Message("user", (Text("like this " + "word " * 12_000), Image(PNG))))
            return await session.prepare()

    async def run() -> PreparedRequest:
        async with sim.async_client() as client:
            return await work(client)

    with Simulator(brain) as sim:
        view = asyncio.run(run())
        last, summary = (entry.usage for entry in sim.ledger.entries[-2:])
    assert any(isinstance(block, Image) for message in view.request.messages for block in message.blocks)
    assert last is not None
    assert summary is not None
    assert summary.read == last.read + last.written > 50_000


def test_an_update_of_the_notes_is_waited_for_once_whoever_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, naps = ManualClock(), list[float]()

    async def settle(_: NotesWriter, limit: timedelta) -> bool:
        clock.pass_time(limit)
        return False

    async def nap(seconds: float) -> None:
        naps.append(seconds)

    with BlockingSession.open(
        FRAME, project=tmp_path, environ={"HOME": str(tmp_path)}, clock=clock
    ) as session:
        session.history.append(Message("user", "go on"))
        for number in range(4):
            step(session, number)
        (folder,) = tmp_path.rglob(session.id)
        updating = NotesFile(own := Folder.open(folder), clock=clock).updating()
        with own, updating, monkeypatch.context() as patch:
            patch.setattr(NotesWriter, "settle", settle)
            # Of this module alone: servers of other tests sleep too, in threads of their own.
            patch.setattr(
                "sevenfold.layers.session_notes.writer.asyncio",
                SimpleNamespace(**{**vars(asyncio), "sleep": nap}),
            )
            assert session.compact().rung
    assert naps == []
