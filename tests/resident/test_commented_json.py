"""One entry in JSON with comments: everything else stays as it was written."""

from __future__ import annotations

import json
import re
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.errors import InputError
from sevenfold.resident.commented_json import add_json_entry, blank_comments, has_comments, remove_json_entry

ENTRY = {"type": "local", "command": ["sevenfold", "mcp"]}
TEXTS = (
    "{}",
    "{ }  // nothing yet",
    "{\n}\n",
    '// mine\n{\n  "theme": "x", // a "quoted" comment, {with} brackets\n  "url": "http://x/*y*/",\n}\n',
    '{\n\t"mcp": {\n\t\t// "sevenfold": {},\n\t\t"other": {"a": [1, 2,],},\n\t},\n}',
    '{"mcp": {}, /* last */ "z": 1}',
    '{"mcp": {"other": {}}}',
    '{"mcp": {\n    // nothing here\n  }\n}',
    '{\r\n  "mcp": {\r\n    "other": {} // x\r\n  }\r\n}\r\n',
    '{"a": "\\\\", "b": "\\"//", "mcp": {"x": {}}}',
)


def parse(text: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(blank_comments(text))
    return found


@pytest.mark.parametrize("text", TEXTS)
def test_an_entry_is_added_and_taken_out_again(text: str) -> None:
    before = parse(text)
    added = add_json_entry(text, "mcp", "sevenfold", ENTRY)
    table = before.get("mcp", {})
    assert isinstance(table, dict)
    assert parse(added) == {**before, "mcp": {**table, "sevenfold": ENTRY}}
    assert add_json_entry(added, "mcp", "sevenfold", ENTRY) == added
    assert added.count("\r\n") == (added.count("\n") if "\r\n" in text else 0)
    removed = remove_json_entry(added, "mcp", "sevenfold")
    left = parse(removed)
    assert {**left, "mcp": left.get("mcp", {})} == {**before, "mcp": table}
    # Each word and each comment stays, in its order.
    assert removed.split() == [*filter(None, removed.split())]
    for part in text.replace("{", " ").replace("}", " ").replace(",", " ").split():
        assert part in added
        assert part in removed or part == '"mcp":'


@pytest.mark.parametrize(
    "text",
    [
        '{"mcp": {"sevenfold": {"old": 1}, "z": {}}}',
        '{"mcp": {"a": {}, "sevenfold": {"old": 1}}}',
        '{"mcp": {"a": {}, "sevenfold": {"old": 1},},}',
        '{"mcp": {"sevenfold": {"old": 1}}, "last": true}',
    ],
)
def test_one_of_that_name_goes_wherever_it_stands(text: str) -> None:
    before = parse(text)
    left = parse(remove_json_entry(text, "mcp", "sevenfold"))
    assert "sevenfold" not in str(left)
    assert left.get("last") == before.get("last")
    again = parse(add_json_entry(text, "mcp", "sevenfold", ENTRY))["mcp"]
    assert isinstance(again, dict)
    assert again["sevenfold"] == ENTRY


def test_what_is_no_json_even_without_its_comments_is_told_from_what_is() -> None:
    assert not any(map(has_comments, ("{", '{"a": }', "// nothing", '{"a": 1}', "[" * 100_000)))
    assert has_comments('{"a": 1,}')
    assert has_comments('{"a": 1} // x')


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            '{"theme": "x", // keep\n "mcp": {"sevenfold": {}, "b": 1}}',
            '{"theme": "x", // keep\n "mcp": { "b": 1}}',
        ),
        (
            '{"mcp": {"b": {}, // mine\n "sevenfold": {}}}',
            '{"mcp": {"b": {} // mine\n }}',
        ),
        (
            '{"mcp": {"b": {}, // mine\n "sevenfold": {} /* z */ , // his\n "c": 1}}',
            '{"mcp": {"b": {}, // mine\n  /* z */  // his\n "c": 1}}',
        ),
        ('{"mcp": {"sevenfold": {} // t\n, "b": 2,},}', '{"mcp": { // t\n "b": 2,},}'),
        ('{"mcp": {}, "mcp": {"sevenfold": {}, "b": 1}}', '{"mcp": {}, "mcp": { "b": 1}}'),
    ],
)
def test_a_comment_beside_the_entry_takes_nothing_in(text: str, left: str) -> None:
    assert remove_json_entry(text, "mcp", "sevenfold") == left
    assert parse(add_json_entry(text, "mcp", "sevenfold", ENTRY))["mcp"]


def test_what_would_hold_something_else_is_refused() -> None:
    with pytest.raises(InputError, match="twice"):
        remove_json_entry('{"mcp": {"sevenfold": 1, "sevenfold": {}}}', "mcp", "sevenfold")


TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|[^\s"/{}\[\],:]+|[{}\[\],:]', re.DOTALL)
SPACES = (
    "",
    " ",
    "\n",
    "\n  ",
    "\n\t",
    "\r\n  ",
    "// {c}\n",
    ' // {c}, "}}\n  ',
    "/* {c} */",
    " /* {c}\n */ ",
)


class Writer:
    """Writes values with spaces, comments and trailing commas of its choice."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw, self.comments = draw, 0

    def space(self) -> str:
        self.comments += 1
        return self.draw(st.sampled_from(SPACES)).format(c=f"c{self.comments}.")

    def write(self, value: object) -> str:
        if isinstance(value, dict):
            members = cast(dict[str, object], value).items()
            pairs = [
                f"{json.dumps(key)}{self.space()}:{self.space()}{self.write(one)}" for key, one in members
            ]
        elif isinstance(value, list):
            pairs = [self.write(one) for one in cast(list[object], value)]
        else:
            return json.dumps(value)
        parts = [f"{self.space()}{one}{self.space()}" for one in pairs]
        last = f",{self.space()}" if parts and self.draw(st.booleans()) else ""
        first, end = "{}" if isinstance(value, dict) else "[]"
        return f"{first}{','.join(parts) or self.space()}{last}{end}"


VALUES = st.recursive(
    st.sampled_from([1, None, "", "// no", "/*", '",}', "\\", "é"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=4,
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    config = draw(st.dictionaries(st.sampled_from(["a", "b", "//"]), VALUES, max_size=2))
    if draw(st.booleans()):
        config["mcp"] = draw(st.dictionaries(st.sampled_from(["x", "y"]), VALUES, max_size=2))
        config = dict(draw(st.permutations(list(config.items()))))
    writer = Writer(draw)
    return writer.space() + writer.write(config) + writer.space()


def edit(text: str, data: st.DataObject) -> str:
    """A comment or a member more, anywhere but in our entry."""
    plain = blank_comments(text)
    own = plain.index('"sevenfold"')
    brace = plain.index("{", own)
    end = brace + json.JSONDecoder().raw_decode(plain[brace:])[1]
    places = [found.end() for found in TOKEN.finditer(text) if not own < found.end() < end]
    at = data.draw(st.sampled_from([0, *places]))
    line_end = text.rfind("\n", 0, at)
    if "//" in text[line_end + 1 : at]:
        return text[:at] + "\n// edited\n" + text[at:]
    if plain[at - 1 : at] == "{" and plain[at:].split()[0] != "}" and data.draw(st.booleans()):
        return f'{text[:at]}"new": 1, // edited\n{text[at:]}'
    return (
        text[:at] + data.draw(st.sampled_from([" // edited\n", "/* edited */", "\n// edited\n"])) + text[at:]
    )


def list_comments(text: str) -> list[str]:
    return [found[0].rstrip() for found in TOKEN.finditer(text) if found[0].startswith(("//", "/*"))]


@given(st.data())
def test_any_document_is_given_back(data: st.DataObject) -> None:
    text = data.draw(documents())
    added = add_json_entry(text, "mcp", "sevenfold", ENTRY)
    assert parse(added) == {**parse(text), "mcp": {**(table(text)), "sevenfold": ENTRY}}
    assert remove_json_entry(added, "mcp", "sevenfold") == text


@given(st.data())
def test_a_document_that_was_edited_meanwhile_loses_the_entry_alone(data: st.DataObject) -> None:
    edited = add_json_entry(data.draw(documents()), "mcp", "sevenfold", ENTRY)
    for _ in range(data.draw(st.integers(1, 3))):
        edited = edit(edited, data)
    removed = remove_json_entry(edited, "mcp", "sevenfold")
    others = {key: value for key, value in table(edited).items() if key != "sevenfold"}
    assert {"mcp": {}, **parse(removed)} == {**parse(edited), "mcp": others}
    assert list_comments(removed) == list_comments(edited)
    assert has_comments(add_json_entry(removed, "mcp", "sevenfold", ENTRY)) == has_comments(removed)


def table(text: str) -> dict[str, object]:
    found = parse(text).get("mcp", {})
    assert isinstance(found, dict)
    return cast(dict[str, object], found)
