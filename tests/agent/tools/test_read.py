"""read shows any part of any text, an image, a notebook; and waits for nothing."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from sevenfold.agent.tools import read
from sevenfold.agent.tools.read import MAX_READ_IMAGE_BYTES, ReadTool
from sevenfold.core.errors import InputError
from sevenfold.core.messages import Image
from sevenfold.core.tool_kinds import ToolContext
from tests.agent.tools.places import call, fault_of, make_place, text_of


@pytest.fixture
def place(tmp_path: Path) -> ToolContext:
    return make_place(tmp_path)


def put(place: ToolContext, name: str, data: bytes | str) -> Path:
    path = place.root / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def test_lines_are_numbered_and_the_file_is_known_as_read(place: ToolContext) -> None:
    path = put(place, "a.txt", "one\ntwo\r\nthree")
    assert text_of(call(ReadTool(), place, file_path="a.txt")) == "     1\tone\n     2\ttwo\n     3\tthree"
    mark = place.reads.find(str(path))
    assert mark is not None
    assert mark.is_whole


def test_a_range_says_where_to_go_on(place: ToolContext) -> None:
    path = put(place, "a.txt", "".join(f"line {number}\n" for number in range(1, 101)))
    shown = text_of(call(ReadTool(), place, file_path=str(path), offset=10, limit="2"))
    assert shown == "    10\tline 10\n    11\tline 11\n[lines 10 to 11 of 100; go on with offset=12]"
    mark = place.reads.find(str(path))
    assert mark is not None
    assert not mark.is_whole
    assert "100 lines" in fault_of(call(ReadTool(), place, file_path="a.txt", offset=101))


def test_a_line_of_any_length_can_be_read_to_its_end(place: ToolContext) -> None:
    line = "".join(chr(0x100 + number % 500) for number in range(read.MAX_READ_CHARS * 2 + 7))
    put(place, "a.json", f"first\n{line}\n")
    assert f"from_char={read.MAX_READ_LINE_CHARS + 1}" in text_of(call(ReadTool(), place, file_path="a.json"))
    parts: list[str] = []
    start = 1
    while start <= len(line):
        shown = text_of(call(ReadTool(), place, file_path="a.json", offset=2, from_char=start))
        parts.append(shown.partition("\n[cut here")[0])
        start += len(parts[-1])
    assert "".join(parts) == line


@pytest.mark.parametrize("offset", [1, 2, 777, 40_000])
def test_a_large_file_is_read_in_parts_as_a_small_one_is(
    offset: int, place: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(place, "big.txt", "".join(f"line {number} é\n" for number in range(1, 40_001)))
    whole = text_of(call(ReadTool(), place, file_path="big.txt", offset=offset, limit=3))
    known = place.reads.marks.copy()
    monkeypatch.setattr(read, "_WHOLE_BYTES", 1_000)
    monkeypatch.setattr(read, "_CHUNK_BYTES", 4_099)
    assert text_of(call(ReadTool(), place, file_path="big.txt", offset=offset, limit=3)) == whole
    assert place.reads.marks == known
    assert "40,000 lines" in fault_of(call(ReadTool(), place, file_path="big.txt", offset=40_001))


def test_an_answer_has_a_limit_whatever_is_asked_for(place: ToolContext) -> None:
    put(place, "a.txt", ("x" * 500 + "\n") * 1_000)
    shown = text_of(call(ReadTool(), place, file_path="a.txt", limit=10**6))
    assert len(shown) < read.MAX_READ_CHARS + 200
    assert "go on with offset=" in shown


def test_an_image_comes_as_an_image(place: ToolContext) -> None:
    data = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
    put(place, "a.bin", data)
    output = call(ReadTool(), place, file_path="a.bin")
    assert isinstance(output.content, tuple)
    [image] = output.content
    assert isinstance(image, Image)
    assert image.source["media_type"] == "image/png"
    assert base64.b64decode(str(image.source["data"])) == data
    put(place, "big.png", data + b"\0" * MAX_READ_IMAGE_BYTES)
    assert "3,750,000" in fault_of(call(ReadTool(), place, file_path="big.png"))


def test_a_notebook_comes_as_text(place: ToolContext) -> None:
    cells: list[object] = [
        {"cell_type": "markdown", "source": ["# Title\n", "words"]},
        {
            "cell_type": "code",
            "source": "print(1)\nplot()",
            "outputs": [
                {"output_type": "stream", "text": ["1\n"]},
                {"output_type": "display_data", "data": {"text/plain": "<Figure>", "image/png": "AAAA"}},
                {"output_type": "error", "traceback": ["Traceback", "ValueError: x"]},
            ],
        },
    ]
    put(place, "a.ipynb", json.dumps({"cells": cells}))
    shown = text_of(call(ReadTool(), place, file_path="a.ipynb"))
    for words in ("# Title", "print(1)", "cell 2: code", "<Figure>", "[image/png]", "ValueError: x"):
        assert words in shown
    assert "AAAA" not in shown
    put(place, "b.ipynb", "{")
    assert "no notebook" in fault_of(call(ReadTool(), place, file_path="b.ipynb"))


def test_what_is_no_text_is_refused_with_a_way_out(place: ToolContext) -> None:
    put(place, "a.bin", b"\x7fELF\0\0")
    put(place, "a.pdf", b"%PDF-1.7 ...")
    assert "xxd" in fault_of(call(ReadTool(), place, file_path="a.bin"))
    assert "pdftotext" in fault_of(call(ReadTool(), place, file_path="a.pdf"))


@pytest.mark.parametrize("data", ["ä\nö".encode("latin-1"), "\ufeffä\nö".encode(), "ä\nö".encode("utf-16")])
def test_text_is_read_in_the_encoding_that_it_has(data: bytes, place: ToolContext) -> None:
    put(place, "a.txt", data)
    assert text_of(call(ReadTool(), place, file_path="a.txt")) == "     1\tä\n     2\tö"


def test_an_empty_file_says_so(place: ToolContext) -> None:
    put(place, "a.txt", "")
    assert text_of(call(ReadTool(), place, file_path="a.txt")) == "[the file is empty]"


def test_a_fifo_a_folder_or_a_device_is_refused_at_once(place: ToolContext) -> None:
    os.mkfifo(place.root / "fifo")
    (place.root / "zero").symlink_to("/dev/zero")
    for name in ("fifo", ".", "zero", "missing"):
        assert fault_of(call(ReadTool(), place, file_path=name))


def test_nothing_outside_is_read_unless_it_was_allowed(place: ToolContext, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("key")
    (place.root / "link").symlink_to(secret)
    for name in ("link", str(secret), "../secret", "~/secret"):
        assert "outside" in fault_of(call(ReadTool(), place, file_path=name))
    allowed = replace(place, admitted=(str(secret),))
    assert text_of(call(ReadTool(), allowed, file_path="link")) == "     1\tkey"
    put(place, "a", "")
    assert "not what was allowed" in fault_of(call(ReadTool(), allowed, file_path="a"))


def test_a_spill_can_be_read_by_its_path(place: ToolContext) -> None:
    assert place.session_folder
    spill = place.session_folder / "tool-results/toolu_1.txt"
    spill.parent.mkdir()
    spill.write_text("whole\nresult\n")
    assert text_of(call(ReadTool(), place, file_path=str(spill), offset=2)) == "     2\tresult"


@pytest.mark.parametrize("given", [{}, {"file_path": ""}, {"file_path": "a\0b"}, {"file_path": 1}])
def test_input_that_names_no_file_is_an_input_error(given: dict[str, object], place: ToolContext) -> None:
    with pytest.raises(InputError):
        call(ReadTool(), place, **given)


@pytest.mark.parametrize("given", [{"offset": 0}, {"limit": True}, {"offset": "x"}, {"from_char": 0}])
def test_numbers_that_make_no_range_are_an_input_error(given: dict[str, object], place: ToolContext) -> None:
    with pytest.raises(InputError, match="whole number"):
        call(ReadTool(), place, file_path="a", **given)
