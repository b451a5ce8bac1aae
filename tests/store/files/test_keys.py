from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.errors import KeyRefused
from sevenfold.core.memories import WINDOWS_DEVICES
from sevenfold.store.files.folder import MAX_KEY_PARTS, check_key, check_memory_key, is_key_part

GOOD = [
    "a",
    "A",
    "0",
    "_x",
    "user_role.md",
    "a-b.c-d",
    "x" * 200,
    "toolu_01AbC",
    "a..b",
    "console",
    "nullify",
]
HOSTILE = [
    "",
    ".",
    "..",
    "/",
    "/etc/passwd",
    "../x",
    "a/../b",
    "a/..",
    "a//b",
    "a/",
    "/a",
    ".hidden",
    ".tmp-0123456789abcdef",
    "a/.git",
    "-rf",
    "~",
    "a b",
    "a\\b",
    "a:b",
    "a*",
    "a.",
    "a/b./c",
    "a\0",
    "a\n",
    "a\x7f",
    "é.md",
    "e\u0301.md",
    "\u212a.md",
    "ſ.md",
    "a\u202egnp.md",
    "a\u200b.md",
    "ａ.md",
    "٣",
    "\ud800",
    "x" * 201,
    "con",
    "CON",
    "Nul.txt",
    "aux.tar.gz",
    "a/prn",
    "com1.md",
    "LPT9",
    "/".join("a" * (MAX_KEY_PARTS + 1)),
]


@pytest.mark.parametrize("key", GOOD)
def test_a_plain_name_is_a_key_of_one_part(key: str) -> None:
    assert is_key_part(key)
    assert check_key(key) == (key,)


def test_a_key_has_up_to_eight_parts() -> None:
    assert check_key("a/b/c.md") == ("a", "b", "c.md")
    assert len(check_key("/".join("a" * MAX_KEY_PARTS))) == MAX_KEY_PARTS


@pytest.mark.parametrize("key", HOSTILE)
def test_a_hostile_name_is_refused_with_a_short_reason(key: str) -> None:
    with pytest.raises(KeyRefused) as caught:
        check_key(key)
    assert len(str(caught.value)) < 400
    assert not is_key_part(key)


@pytest.mark.parametrize("name", sorted(WINDOWS_DEVICES))
@pytest.mark.parametrize("form", ["{}", "{}.md", "{}.tar.gz"])
def test_a_device_of_another_system_is_refused_by_its_name(name: str, form: str) -> None:
    for spelled in (name, name.upper(), name.title()):
        with pytest.raises(KeyRefused, match="device"):
            check_key(form.format(spelled))
    assert is_key_part(form.format(f"{name}x"))


def test_names_of_our_own_may_be_hidden_but_only_exactly_these() -> None:
    own = frozenset([".consolidate-lock"])
    assert check_key(".consolidate-lock", own) == (".consolidate-lock",)
    for other in (".Consolidate-Lock", ".consolidate-lock2", ".consolidate-lock/..", ".tmp-x"):
        with pytest.raises(KeyRefused):
            check_key(other, own)


names = st.text(st.sampled_from("aZ0_.-/ \\\0\n:é\u0301con"), max_size=12) | st.text(max_size=12)


@given(names)
def test_a_key_is_accepted_only_if_every_part_is_plain_ascii(key: str) -> None:
    try:
        parts = check_key(key)
    except KeyRefused:
        parts = ()
        assert not all(is_key_part(part) for part in key.split("/")) or key.count("/") >= MAX_KEY_PARTS
    for part in parts:
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", part)
        assert not part.endswith(".")
        assert part.lower().partition(".")[0] not in WINDOWS_DEVICES
    assert not parts or "/".join(parts) == key


def test_the_reason_names_the_part_of_a_key_with_several() -> None:
    with pytest.raises(KeyRefused, match=r"key 'a/\.git' is refused for its part '\.git': use 1 to 200"):
        check_key("a/.git")
    with pytest.raises(KeyRefused, match=r"key '\.git' is refused: use 1 to 200"):
        check_key(".git")


@pytest.mark.parametrize("key", ["a.md", "team/a.md", "logs/2026/03/2026-03-02.md", "memory.txt.md"])
def test_a_memory_is_named_by_a_key_that_ends_in_md(key: str) -> None:
    assert check_memory_key(key) == key


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("a.txt", "end in .md"),
        ("a.MD", "end in .md"),
        ("team.md/a.md", "a folder on its way"),
        ("Team.Md/a.md", "a folder on its way"),
        ("MEMORY.md", "is the index"),
        ("team/memory.md", "is the index"),
        ("a/b/c/d/e.md", "5 deep; at most 4"),
        ("../a.md", "refused"),
    ],
)
def test_other_keys_are_no_memories_for_a_reason(key: str, reason: str) -> None:
    with pytest.raises(KeyRefused, match=reason):
        check_memory_key(key)
