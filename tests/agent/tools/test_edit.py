"""write and edit change exactly what was meant, in the file that was read, and nothing else about it."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

from sevenfold.agent.tools.file_changes import (
    EditTool,
    TextFormat,
    WriteTool,
    decode_text_file,
    encode_text_file,
)
from sevenfold.agent.tools.read import ReadTool
from sevenfold.core.errors import InputError
from sevenfold.core.tool_kinds import ToolContext
from tests.agent.tools.places import call, fault_of, make_place, text_of


@pytest.fixture
def place(tmp_path: Path) -> ToolContext:
    return make_place(tmp_path)


def put(place: ToolContext, name: str, data: bytes | str) -> Path:
    """A file that the agent has read."""
    path = place.root / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    text_of(call(ReadTool(), place, file_path=name))
    return path


def test_one_place_is_changed_and_shown_as_a_diff(place: ToolContext) -> None:
    path = put(place, "a.py", "one = 1\ntwo = 2\n")
    output = call(EditTool(), place, file_path="a.py", old_string="two = 2", new_string="two = 3")
    assert path.read_text() == "one = 1\ntwo = 3\n"
    assert output.diff.splitlines()[-3:] == [" one = 1", "-two = 2", "+two = 3"]
    text_of(call(EditTool(), place, file_path="a.py", old_string="two = 3", new_string="two = 4"))
    assert path.read_text() == "one = 1\ntwo = 4\n"


def test_a_text_that_stands_twice_names_where_unless_all_are_meant(place: ToolContext) -> None:
    path = put(place, "a.txt", "x\ny\nx\n")
    fault = fault_of(call(EditTool(), place, file_path="a.txt", old_string="x", new_string="z"))
    assert "2 times, at lines 1, 3" in fault
    assert path.read_text() == "x\ny\nx\n"
    output = call(EditTool(), place, file_path="a.txt", old_string="x", new_string="z", replace_all=True)
    assert "2 places" in text_of(output)
    assert path.read_text() == "z\ny\nz\n"


@pytest.mark.parametrize(
    ("old", "hint"),
    [
        ("def  f( ):\n  return 1", "line 2 with other white space"),
        ("     2\tdef f():", "line numbers"),
        ("def f(x):", "nearest, at line 2: def f():"),
        ("def f():\n    return 2", "this is there, at line 2"),
        ("something else entirely", "read the file again"),
        ("\n\n\n\n", "read the file again"),
    ],
)
def test_a_text_that_is_not_there_is_answered_with_what_is(old: str, hint: str, place: ToolContext) -> None:
    put(place, "a.py", "# f\ndef f():\n    return 1\n")
    assert hint in fault_of(call(EditTool(), place, file_path="a.py", old_string=old, new_string="x"))


def test_a_file_that_was_not_read_or_was_changed_since_is_left_alone(place: ToolContext) -> None:
    path = place.root / "a.txt"
    path.write_text("one")
    for tool, given in (
        (EditTool(), {"old_string": "one", "new_string": "two"}),
        (WriteTool(), {"content": "two"}),
    ):
        assert "read it first" in fault_of(call(tool, place, file_path="a.txt", **given))
    call(ReadTool(), place, file_path="a.txt")
    path.write_text("one more")
    assert "changed since" in fault_of(call(WriteTool(), place, file_path="a.txt", content="two"))
    assert path.read_text() == "one more"


def test_a_new_file_is_made_with_its_folders(place: ToolContext) -> None:
    output = call(WriteTool(), place, file_path="a/b/c.txt", content="one\ntwo\n")
    assert "Created" in text_of(output)
    assert (place.root / "a/b/c.txt").read_text() == "one\ntwo\n"
    assert "Wrote" in text_of(call(WriteTool(), place, file_path="a/b/c.txt", content="three"))
    assert (place.root / "a/b/c.txt").read_text() == "three"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\r\nb\r\n", b"a\r\nB\r\nC\r\n"),
        (b"\xef\xbb\xbfa\nb\n", b"\xef\xbb\xbfa\nB\nC\n"),
        ("a\r\nb\r\n".encode("utf-16"), "a\r\nB\r\nC\r\n".encode("utf-16")),
        (b"\xe4a\nb\n", b"\xe4a\nB\nC\n"),
        (b"a\r\nb\n", b"a\r\nB\nC\n"),
        (b"a\nb", b"a\nB\nC"),
    ],
)
def test_encoding_and_line_ends_stay_as_they_were(before: bytes, after: bytes, place: ToolContext) -> None:
    path = put(place, "a.txt", before)
    path.chmod(0o751)
    text_of(call(EditTool(), place, file_path="a.txt", old_string="b", new_string="B\nC"))
    assert path.read_bytes() == after
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


def test_a_character_that_the_file_cannot_hold_is_refused(place: ToolContext) -> None:
    path = put(place, "a.txt", b"\xe4")
    fault = fault_of(call(EditTool(), place, file_path="a.txt", old_string="ä", new_string="€"))
    assert "latin-1" in fault
    assert path.read_bytes() == b"\xe4"


@hypothesis_given(st.binary(max_size=200).filter(lambda data: b"\0" not in data))
def test_what_is_read_as_text_goes_back_as_it_came(data: bytes) -> None:
    found = decode_text_file(data, "a")
    assert encode_text_file(found.text, found.form, "a") == data


@hypothesis_given(st.text(), st.sampled_from([TextFormat(), TextFormat("utf-16-le", b"\xff\xfe")]))
def test_what_is_written_as_text_reads_as_it_was(text: str, form: TextFormat) -> None:
    data = encode_text_file(text, form, "a")
    if b"\0" in data and form.encoding == "utf-8":
        return
    found = decode_text_file(data, "a")
    assert encode_text_file(found.text, found.form, "a") == data


def test_nothing_is_written_outside_unless_it_was_allowed(place: ToolContext, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (place.root / "folder").symlink_to(outside)
    (place.root / "file").symlink_to(outside / "new")
    for name in ("folder/a", "file", "../outside/b", str(outside / "c")):
        assert "outside" in fault_of(call(WriteTool(), place, file_path=name, content="x"))
    assert os.listdir(outside) == []
    allowed = replace(place, admitted=(str(outside / "new"),))
    text_of(call(WriteTool(), allowed, file_path="file", content="x"))
    assert (outside / "new").read_text() == "x"
    assert (place.root / "file").is_symlink()


def test_a_hard_link_keeps_what_its_other_name_has(place: ToolContext, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("theirs")
    os.link(other, place.root / "here")
    call(ReadTool(), place, file_path="here")
    text_of(call(EditTool(), place, file_path="here", old_string="theirs", new_string="ours"))
    assert (other.read_text(), (place.root / "here").read_text()) == ("theirs", "ours")


def test_an_edit_of_nothing_or_into_the_same_is_an_input_error(place: ToolContext) -> None:
    for old, new in (("", "x"), ("x", "x")):
        with pytest.raises(InputError):
            call(EditTool(), place, file_path="a", old_string=old, new_string=new)
    assert "glob" in fault_of(call(EditTool(), place, file_path="none", old_string="a", new_string="b"))
