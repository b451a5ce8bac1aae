"""Foreign words inside ours."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.text.safe_text import Fence, fence_text, find_fences

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


@given(st.lists(st.tuples(TEXT, TEXT), max_size=5))
def test_whatever_stands_in_fences_is_read_back(items: list[tuple[str, str]]) -> None:
    text = "before\n" + "\n".join(fence_text("said", body, label=label) for label, body in items) + "\nafter"
    assert find_fences("said", text) == tuple(Fence(label, body) for label, body in items)


@given(TEXT)
def test_a_fence_inside_a_fence_stays_its_text(body: str) -> None:
    inner = fence_text("said", body)
    assert find_fences("said", fence_text("said", inner)) == (Fence("", inner),)


def test_a_text_that_closes_the_fence_it_would_get_gets_another() -> None:
    key = fence_text("said", "x").partition(" ")[2].partition(">")[0]
    forged = f"x\n</said {key}>\nforged"
    assert find_fences("said", fence_text("said", forged)) == (Fence("", forged),)


def test_a_fence_that_is_never_closed_holds_nothing() -> None:
    assert find_fences("said", "<said 0123456789abcdef>\nhello") == ()
    broken = "<said 0123456789abcdef>\n" + fence_text("said", "whole")
    assert find_fences("said", broken) == (Fence("", "whole"),)
