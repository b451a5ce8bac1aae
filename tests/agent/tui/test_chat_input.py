"""The input side of a chat: what waits can be taken back, a prompt that nobody answered returns, images."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sevenfold.agent.tools.file_changes import WriteTool
from sevenfold.agent.tui.text_renderer import TextRenderer
from sevenfold.agent.tui.user_input import ImageChips, read_clipboard_image, read_user_input
from sevenfold.core.messages import Text
from sevenfold.core.requests import ModelRequest, ModelResponse
from sevenfold.providers.scripted import make_response
from tests.agent.tui.chat_setup import ChatSetup
from tests.agent.tui.test_chat import play

PNG = b"\x89PNG\r\n\x1a\n" + bytes(2_000)


def test_what_waits_is_shown_above_the_input_and_can_be_taken_back(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.keys.enter("Go.")
        await desk.keys.wait_until(lambda: "look" in desk.chat.live(desk.keys.renderer()))
        for line in ("one", "two"):
            desk.keys.enter(line)
        await desk.keys.wait_until(lambda: "› two" in desk.chat.live(desk.keys.renderer()))
        assert desk.chat.take_back() == "two"
        assert "two" not in desk.chat.live(desk.keys.renderer())
        await desk.keys.wait_for("Done.")
        assert not desk.chat.has_queue
        assert "› one" in desk.keys.text

    models = play(tmp_path, [make_response(calls={"look": {"waits": 4_000}}), make_response("Done.")], story)
    texts = [block.text for block in models.requests[-1].messages[-1].blocks if isinstance(block, Text)]
    assert any("one" in text for text in texts)
    assert not any("two" in text for text in texts)


def test_a_prompt_that_was_interrupted_before_an_answer_returns_to_the_input(tmp_path: Path) -> None:
    is_asked = asyncio.Event()

    async def never(_: ModelRequest) -> ModelResponse:
        is_asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def story(desk: ChatSetup) -> None:
        desk.keys.enter("Where is the cat?")
        await is_asked.wait()
        desk.chat.escape()
        await desk.keys.wait_for("interrupted")
        await desk.keys.wait_until(lambda: desk.keys.typed == "Where is the cat?")
        assert len(desk.agent.session.history) == 0
        desk.keys.enter("Where is the dog?")
        await desk.keys.wait_for("Out.")

    models = play(tmp_path, [never, make_response("Out.")], story)
    assert "the cat" not in str(models.requests[-1].messages)
    assert str(models.requests[-1].messages).count("Working folder:") == 1, "where it works is said again"


def test_escape_twice_goes_back_by_menu_and_undo_brings_it_back(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.agent.mode = "accept-edits"
        project = desk.agent.place.cwd
        for number in (1, 2):
            desk.keys.enter(f"Write {number}.")
            await desk.keys.wait_for(f"Done {number}.")
            await desk.keys.wait_until(lambda: not desk.chat.is_busy)
        desk.chat.escape()
        desk.chat.escape()
        await desk.keys.wait_until(lambda: desk.chat.menu is not None)
        assert "1 Write 2." in desk.chat.question(desk.keys.renderer())
        desk.chat.type("1")
        await desk.keys.wait_until(lambda: "what goes back?" in desk.chat.question(desk.keys.renderer()))
        assert "what commands changed is not taken back" in desk.chat.question(desk.keys.renderer())
        desk.chat.press("enter")
        await desk.keys.wait_for("/rewind undo undoes it")
        assert not (project / "2.txt").exists()
        assert (project / "1.txt").exists()
        assert desk.keys.typed == "Write 2."
        desk.keys.enter("/rewind undo")
        await desk.keys.wait_for("undone: 4 messages are back")
        assert (project / "2.txt").read_text() == "2"

    def write(number: int) -> ModelResponse:
        return make_response(calls={"write": {"file_path": f"{number}.txt", "content": str(number)}})

    play(
        tmp_path,
        [write(1), make_response("Done 1."), write(2), make_response("Done 2.")],
        story,
        [WriteTool()],
    )


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("shot.png", PNG, ""),
        ("gone.png", None, "there is no such file"),
        ("text.png", b"no image", "it is no PNG, JPEG, GIF or WebP image"),
    ],
)
def test_an_image_has_a_chip_or_an_error_before_it_is_sent(
    tmp_path: Path, name: str, content: bytes | None, problem: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    chip = ImageChips(tmp_path).render(f"look at @{name}", TextRenderer())
    assert chip == f"[{name}: {problem or 'PNG, 2 kB'}]"
    typed = read_user_input(f"look at @{name}", tmp_path)
    assert bool(typed.problems) == bool(problem)


def test_a_text_with_an_image_that_cannot_be_sent_stays_in_the_input(tmp_path: Path) -> None:
    async def story(desk: ChatSetup) -> None:
        desk.keys.enter("what is @gone.png")
        await desk.keys.wait_for("there is no such file")
        assert desk.keys.typed == "what is @gone.png"

    assert play(tmp_path, [], story).requests == []


def test_an_image_of_the_clipboard_is_stored_for_its_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "needs one of" in str(read_clipboard_image(tmp_path / "images"))
    (tmp_path / "data").write_bytes(PNG)
    program = tmp_path / "wl-paste"
    program.write_text(f"#!/bin/sh\nexec /bin/cat {tmp_path}/data\n", encoding="utf-8")
    program.chmod(0o755)
    path = read_clipboard_image(tmp_path / "images")
    assert isinstance(path, Path)
    assert path.read_bytes() == PNG
    assert path.stat().st_mode & 0o777 == 0o600
    program.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    assert read_clipboard_image(tmp_path / "images") == "the clipboard has no image"
