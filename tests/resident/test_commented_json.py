"""One entry in JSON with comments: everything else stays as it was written."""

from __future__ import annotations

import json

import pytest

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
