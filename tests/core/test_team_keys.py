"""The names of shared memories: what passes is harmless everywhere, and the rest is refused."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.errors import KeyRefused
from sevenfold.core.memories import WINDOWS_DEVICES, check_team_key, is_team_key

GOOD = ["a.md", "build-notes.md", "api/errors.md", "a/b/c.md", f"{'x' * 80}.md", "0_1.md"]
BAD = [
    *("", ".md", "a", "a.txt", "a.md.md", "A.md", "MEMORY.md", "a.MD", "a.md ", " a.md", "a.md\n", "a.md\0"),
    *("../a.md", "a/../b.md", "./a.md", "/a.md", "a//b.md", "a/.md", "a/b/c/d.md", "a\\b.md", "c:a.md"),
    *("%2e%2e/a.md", "a%2fb.md", "..%c0%af.md", "-a.md", "_a.md", ".a.md", f"{'x' * 81}.md"),
    *(
        "ä.md",
        "ａ.md",
        "a\u0301.md",
        "a\u200b.md",
        "\u202egpj.md",
        "a.md:ads",
        "~/a.md",
        "con.md",
        "x/nul.md",
    ),
]


@pytest.mark.parametrize("key", GOOD)
def test_a_plain_name_passes(key: str) -> None:
    check_team_key(key)
    assert is_team_key(key)


@pytest.mark.parametrize("key", BAD, ids=ascii)
def test_a_name_with_a_trick_in_it_is_refused(key: str) -> None:
    with pytest.raises(KeyRefused, match="cannot be a shared memory's name"):
        check_team_key(key)


@pytest.mark.parametrize("device", sorted(WINDOWS_DEVICES))
def test_no_part_is_a_device(device: str) -> None:
    assert not is_team_key(f"{device}.md")
    assert not is_team_key(f"{device}/a.md")
    assert is_team_key(f"{device}-notes.md")


@given(st.text(max_size=100) | st.from_regex(r"[a-z0-9_./-]{1,40}\.md", fullmatch=True))
def test_what_passes_is_lower_case_ascii_that_stays_where_it_is_put(key: str) -> None:
    if is_team_key(key):
        assert key == key.casefold() == unicodedata.normalize("NFKC", key)
        assert key.isascii()
        assert not {"", ".", ".."} & set(key.split("/"))
