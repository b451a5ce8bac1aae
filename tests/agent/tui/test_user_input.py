"""What is typed becomes a message, and images go with it by their paths."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sevenfold.agent.tui.user_input import MAX_PROMPT_IMAGE_BYTES, read_user_input
from sevenfold.core.messages import Image, Message, Text

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 8


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cat.png").write_bytes(PNG)
    (tmp_path / "my cat.webp").write_bytes(b"RIFF1234WEBP")
    (tmp_path / "not.jpg").write_bytes(b"text")
    return tmp_path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=80))
def test_text_that_names_no_image_is_sent_as_it_is(text: str, tmp_path: Path) -> None:
    assert read_user_input(text, tmp_path / "empty").message == Message("user", text)


@pytest.mark.parametrize(
    "typed",
    [
        "~nobody-of-this-name/x.png",
        "@~nobody-of-this-name/x.png",
        f"https://x.example/{'a' * 300}.png",
        f"@{'a' * 300}.png",
        "@" + "x/" * 3_000 + "x.png",
        "file://[half.png",
        "@a\0b.png",
    ],
)
def test_a_name_that_no_file_can_have_is_a_word(typed: str, tmp_path: Path) -> None:
    found = read_user_input(typed, tmp_path)
    assert (found.message, found.images) == (Message("user", typed), ())


@pytest.mark.parametrize(
    "typed",
    [
        "what is in @cat.png ?",
        "cat.png",
        "look at './cat.png'",
        'and "cat.png" twice cat.png',
        "see file://{folder}/cat.png",
        "{folder}/cat.png",
    ],
)
def test_an_image_goes_with_the_text_that_names_it(typed: str, folder: Path) -> None:
    text = typed.format(folder=folder)
    found = read_user_input(text, folder)
    image, said = found.message.blocks
    assert isinstance(image, Image)
    assert image.source["media_type"] == "image/png"
    assert said == Text(text)


@pytest.mark.parametrize("typed", ["@'my cat.webp'", r"my\ cat.webp", "file://{folder}/my%20cat.webp"])
def test_a_path_with_a_space_is_one_path(typed: str, folder: Path) -> None:
    found = read_user_input(typed.format(folder=folder), folder)
    assert found.images == (folder / "my cat.webp",)


def test_a_file_that_is_no_image_is_said_to_be_none(folder: Path) -> None:
    found = read_user_input("@not.jpg", folder)
    assert found.images == ()
    assert "no PNG, JPEG, GIF or WebP" in found.problems[0]


def test_an_image_over_the_limit_is_left_out_and_said_so(folder: Path) -> None:
    (folder / "big.png").write_bytes(PNG + b"0" * MAX_PROMPT_IMAGE_BYTES)
    found = read_user_input("@big.png", folder)
    assert found.message == Message("user", "@big.png")
    assert "make it smaller" in found.problems[0]


def test_a_path_that_is_not_there_is_only_text(folder: Path) -> None:
    assert read_user_input("write to out.png", folder).message == Message("user", "write to out.png")
