"""The head of a markdown file is read as strings, whatever a YAML parser would make of it."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.errors import InputError
from sevenfold.core.text.markdown import MAX_HEAD_BYTES, read_frontmatter, write_frontmatter

KEYS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,20}", fullmatch=True).filter(lambda key: key != "metadata")
TEXTS = st.text(max_size=60)
FIELDS = st.dictionaries(KEYS, TEXTS | st.lists(TEXTS, max_size=4).map(tuple), max_size=5)


@given(FIELDS, st.text())
def test_what_is_written_reads_back_as_the_same(fields: dict[str, str | tuple[str, ...]], body: str) -> None:
    document = read_frontmatter(write_frontmatter(fields, body))
    assert dict(document.fields) == fields
    assert (document.body, document.rest, document.fault) == (body, (), "")


@given(TEXTS)
def test_others_read_the_same_out_of_it(text: str) -> None:
    head = write_frontmatter({"text": text, "texts": (text, text)}, "").removesuffix("---\n")
    assert yaml.safe_load(head) == {"text": text, "texts": [text, text]}


@given(st.text())
def test_no_text_makes_reading_fail_or_loses_its_body(text: str) -> None:
    document = read_frontmatter(text)
    assert text.endswith(document.body)


@given(st.text(alphabet="ab:-[]{}'\"|>#&*!, \n\t\\", max_size=200))
def test_no_head_makes_reading_fail(head: str) -> None:
    assert read_frontmatter(f"---\n{head}\n---\nbody").fault == ""


@pytest.mark.parametrize(
    ("head", "value"),
    [
        ("a: no", "no"),
        ("a: 1.10", "1.10"),
        ("a: 2026-02-31", "2026-02-31"),
        ("a: issue #5 in C # the language", "issue #5 in C # the language"),
        ("a: *bold* words", "*bold* words"),
        ("a: &anchor x", "&anchor x"),
        ('a: "say \\"hi\\"\\n"', 'say "hi"\n'),
        ('a: "\\x41"', "\\x41"),
        ("a: 'it''s'", "it's"),
        ("a: key: value", "key: value"),
        ("a:", ""),
        ("a: one\n  two\n  three", "one two three"),
        ("a: >-\n  one\n  two\n\n  three", "one two\nthree"),
        ("a: |\n  one\n    two\n", "one\n  two"),
        ("a: [x, 'y, z', \"w\"]", ("x", "y, z", "w")),
        ("a: []", ()),
        ("a: [\n  x,\n  y\n  ]", ("x", "y")),
        ("a:\n  - x\n  - y", ("x", "y")),
        ("a:\n- x\n- y: z", ("x", "y: z")),
    ],
)
def test_a_value_is_what_a_person_meant(head: str, value: str | tuple[str, ...]) -> None:
    assert read_frontmatter(f"---\n{head}\n---\n").fields == {"a": value}


@pytest.mark.parametrize(
    "head",
    [
        "type: user",
        "metadata:\n  type: user",
        "metadata:\n    node_type: memory\n    type: user",
        "metadata: {node_type: memory, type: user}",
        "metadata:\n  type: project\ntype: user",
        "type: user\r\nmetadata:\r\n  type: project\r",
    ],
)
def test_both_dialects_say_the_type(head: str) -> None:
    assert read_frontmatter(f"---\n{head}\n---\nbody").text("type") == "user"


@pytest.mark.parametrize(
    "line", ["# a remark", "<<: *all", "a: {b: c}", "a: [[x]]", "two words: x", "a:\n  b:\n    c: d", "?"]
)
def test_what_is_not_understood_is_kept_as_it_stands(line: str) -> None:
    document = read_frontmatter(f"---\n{line}\nname: x\n---\nbody")
    assert document.fields == {"name": "x"}
    assert document.rest == tuple(line.split("\n"))
    again = read_frontmatter(write_frontmatter(document.fields, document.body, document.rest))
    assert again == document


def test_a_second_value_of_a_key_changes_nothing() -> None:
    document = read_frontmatter("---\nname: one\nname: two\n---\n")
    assert document.fields == {"name": "one"}
    assert document.rest == ("name: two",)


def test_a_file_without_a_head_is_all_body() -> None:
    assert read_frontmatter("# Title\n---\nname: x\n---\n").body == "# Title\n---\nname: x\n---\n"


@pytest.mark.parametrize("end", ["\n---\nbody", "\nno end"])
def test_a_head_that_does_not_end_in_time_is_body_and_says_so(end: str) -> None:
    text = "---\nname: " + "x" * MAX_HEAD_BYTES + end
    document = read_frontmatter(text)
    assert document.body == text
    assert f"{MAX_HEAD_BYTES:,}" in document.fault


def test_a_byte_order_mark_and_windows_line_ends_are_no_hindrance() -> None:
    document = read_frontmatter("\ufeff---\r\nname: x\r\ntools:\r\n  - a\r\n---\r\nline\r\n")
    assert document.fields == {"name": "x", "tools": ("a",)}
    assert document.body == "line\r\n"


def test_a_list_may_be_written_as_words_between_commas() -> None:
    assert read_frontmatter("---\ntools: read, grep\n---\n").texts("tools") == ("read", "grep")
    assert read_frontmatter("---\ntools: [read, grep]\n---\n").text("tools") == "read, grep"


def test_a_head_that_could_not_be_read_back_is_not_written() -> None:
    with pytest.raises(InputError, match="shorten"):
        write_frontmatter({"a": "x" * MAX_HEAD_BYTES}, "")
    with pytest.raises(InputError, match="two words"):
        write_frontmatter({"two words": "x"}, "")
