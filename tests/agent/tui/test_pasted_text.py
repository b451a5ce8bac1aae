"""Long pasted text is a short token in the input, and is sent whole."""

from __future__ import annotations

from sevenfold.agent.tui.input_keys import MIN_FOLDED_CHARS, MIN_FOLDED_LINES, PastedTexts

LONG = "\n".join(f"line {number}" for number in range(200))


def test_short_text_is_put_in_as_it_is() -> None:
    text = "\n".join(["x"] * (MIN_FOLDED_LINES - 1))
    assert PastedTexts().fold(text) == text


def test_long_text_becomes_a_token_that_stands_for_it() -> None:
    pastes = PastedTexts()
    first, second = pastes.fold(LONG), pastes.fold("y" * MIN_FOLDED_CHARS)
    assert first == "[pasted text 1: 200 lines]"
    assert second == f"[pasted text 2: {MIN_FOLDED_CHARS:,} characters]"
    assert pastes.unfold(f"see {first} and {second}") == f"see {LONG} and {'y' * MIN_FOLDED_CHARS}"


def test_what_only_looks_like_a_token_stays() -> None:
    assert PastedTexts().unfold("[pasted text 7: 3 lines]") == "[pasted text 7: 3 lines]"


def test_tokens_in_pasted_text_are_not_replaced() -> None:
    pastes = PastedTexts()
    token = pastes.fold(f"[pasted text 1: 200 lines]\n{LONG}")
    assert pastes.unfold(token) == f"[pasted text 1: 200 lines]\n{LONG}"


def test_a_text_that_comes_back_has_its_tokens_again() -> None:
    pastes = PastedTexts()
    sent = f"{pastes.fold(LONG)} and @gone.png"
    assert pastes.fold_again(pastes.unfold(sent)) == sent
    assert pastes.fold_again("a word") == "a word"
    assert pastes.fold_again(f"another {LONG[:-1]}") == "[pasted text 2: 200 lines]"
