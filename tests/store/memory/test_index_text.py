"""The index has a line for every memory, keeps what a person wrote, and never drops the newest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sevenfold.store.memory.index_text import (
    MAX_INDEX_GROUPS,
    MAX_INDEX_LINE_CHARS,
    MAX_MEMORY_INDEX_BYTES,
    MAX_MEMORY_INDEX_LINES,
    MIN_INDEX_ENTRIES,
    apply_index,
    drop_index_entries,
    fit_index,
    is_group_line,
    is_same_index,
    render_index_line,
)


def line_of(key: str) -> str:
    return render_index_line(key, key.removesuffix(".md"), "when it matters")


def made(text: str, keys: list[str], touched: tuple[str, ...] = ()) -> str:
    ages = {key: age for age, key in enumerate(keys)}
    return apply_index(text, ages, line_of, touched, ages)


def test_a_line_stays_where_it_stands_until_its_memory_changes() -> None:
    text = "# Mine\n- [My A](a.md): by hand\n\n## Other\nfree words\n- [b](b.md) — old\n"
    assert made(text, ["a.md", "b.md", "c.md"], ("b.md",)) == (
        "# Mine\n- [My A](a.md): by hand\n\n## Other\nfree words\n"
        "- [b](b.md) — when it matters\n- [c](c.md) — when it matters\n"
    )


def test_a_line_of_a_memory_that_is_gone_goes_and_a_link_of_ones_own_stays() -> None:
    text = "- [a](a.md) — x\n- [Design](docs/design.md) — in the project\n- [a](a.md) — twice\n"
    assert made(text, [], ("a.md",)) == "- [Design](docs/design.md) — in the project\n"
    assert made(text, ["a.md"]).count("a.md") == 1


def test_a_line_is_never_too_long_nor_two() -> None:
    line = render_index_line("a.md", "a [title]\nof two lines", "hook " * 100)
    assert len(line) == MAX_INDEX_LINE_CHARS
    assert line.startswith("- [a title of two lines](a.md) — hook")
    assert "\n" not in line
    long = f"{'k' * 190}.md"
    assert render_index_line(long, "t", "hook").endswith(f"({long})")


def test_the_oldest_are_folded_by_topic_and_the_newest_have_lines_of_their_own() -> None:
    keys = [f"{topic}-{n}.md" for n in range(150) for topic in ("release", "api", "odd")]
    text = made("# Mine\n", keys)
    lines = text.splitlines()
    assert lines[0] == "# Mine"
    assert len(lines) <= MAX_MEMORY_INDEX_LINES
    assert len(text.encode()) <= MAX_MEMORY_INDEX_BYTES
    assert all(f"]({key})" in text for key in keys[-150:])
    groups = [line for line in lines if is_group_line(line)]
    assert groups
    assert groups[0].split(" older on ")[1].split(":")[0] in ("release", "api", "odd")
    assert all(len(line) <= MAX_INDEX_LINE_CHARS for line in groups)
    counted = sum(int(line.split()[1].replace(",", "")) for line in groups)
    assert counted + text.count("](") == len(keys)


def test_an_index_that_just_fits_is_not_folded() -> None:
    keys = [f"topic-{n:03}-{'k' * 100}.md" for n in range(200)]
    sizes = {count: len(made("", keys[:count]).encode()) for count in range(100, 200)}
    most = max(count for count in sizes if len(made("", keys[:count]).splitlines()) == count)
    line = len(line_of(keys[0]).encode()) + 1
    assert MAX_MEMORY_INDEX_BYTES - line < sizes[most] <= MAX_MEMORY_INDEX_BYTES
    assert "older" not in made("", keys[:most])
    assert "older" in made("", keys[: most + 1])


def test_folding_comes_undone_when_there_is_room_again() -> None:
    keys = [f"topic-{n}.md" for n in range(300)]
    folded = made("", keys)
    left = keys[-100:]
    assert made(folded, left, tuple(keys[:200])) == made("", left)


def test_many_lines_of_ones_own_leave_the_newest_in_sight() -> None:
    own = "".join(f"own line {n}\n" for n in range(250))
    keys = [f"topic-{n}.md" for n in range(300)]
    text = made(own, keys)
    assert text.startswith(own)
    part = fit_index(text)
    lines = part.text.splitlines()
    assert len(lines) <= MAX_MEMORY_INDEX_LINES
    assert all(f"]({key})" in part.text for key in keys[-MIN_INDEX_ENTRIES:])
    assert lines[0] == "own line 0"
    assert lines[-1] == part.warning
    assert part.cut_lines == len(text.splitlines()) - len(lines) + 1
    assert f"{part.cut_lines} lines not shown" in part.warning


def test_long_lines_of_ones_own_are_cut_by_bytes() -> None:
    part = fit_index("".join(f"{n} " + "é" * 600 + "\n" for n in range(40)))
    assert len(part.text.encode()) <= MAX_MEMORY_INDEX_BYTES
    assert part.cut_lines > 0
    assert part.text.startswith("0 é")


def test_an_index_within_its_caps_is_shown_as_it_is() -> None:
    assert fit_index("# Mine\n").text == "# Mine\n"
    assert fit_index("").text == ""


def test_an_edit_that_says_nothing_new_is_none() -> None:
    ages = {"a.md": 1, "b.md": 2}
    kept = f"# Mine\n{line_of('a.md')}\n{line_of('b.md')}\n"
    same = [f"# Mine\n{line_of('b.md')}\n", kept + "\n\n", kept + "- 14 older on x: a.md\n"]
    other = [
        kept.replace("when it matters", "obey", 1),
        kept + "Obey.\n",
        kept.replace("# Mine\n", ""),
        f"# Mine\n{line_of('b.md')}\n{line_of('a.md')}\n",
        kept + "- [c](c.md) — new\n",
    ]
    assert all(is_same_index(kept, found, ages, line_of) for found in same)
    assert not any(is_same_index(kept, found, ages, line_of) for found in other)


def test_lines_about_some_memories_are_dropped() -> None:
    assert (
        drop_index_entries("x\n- [a](a.md) — y\n- [b](b.md)\n- 2 older: c.md\n", ["a.md"])
        == "x\n- [b](b.md)\n"
    )


own_text = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=20), max_size=8)
topics = st.lists(st.from_regex(r"[a-z]{1,3}-[0-9]{1,3}\.md", fullmatch=True), unique=True, max_size=260)


@given(own_text, topics, st.data())
def test_every_memory_is_there_once_and_every_own_line_too(
    own: list[str], keys: list[str], data: st.DataObject
) -> None:
    before = "".join(f"{line}\n" for line in own)
    text = made(before, keys)
    assert made(text, keys) == text
    folded = sum(int(line.split()[1].replace(",", "")) for line in text.splitlines() if is_group_line(line))
    assert folded + sum(1 for key in keys if f"]({key})" in text) == len(keys)
    assert len(text.splitlines()) <= max(
        MAX_MEMORY_INDEX_LINES, len(before.splitlines()) + MIN_INDEX_ENTRIES + MAX_INDEX_GROUPS
    )
    assert [line for line in text.split("\n") if "](" not in line and not is_group_line(line)][
        : len(own)
    ] == own
    gone = tuple(data.draw(st.sets(st.sampled_from(keys)))) if keys else ()
    left = [key for key in keys if key not in gone]
    assert not any(f"]({key})" in made(text, left, gone) for key in gone)


def test_a_line_holds_nothing_that_turns_it_round_or_drives_a_terminal() -> None:
    assert (
        render_index_line("a.md", "a\x1b[31m\u202e", "x\u2066y\x07 – ز\u200cن")
        == "- [a31m](a.md) — xy – ز\u200cن"
    )


def test_an_index_is_cut_to_exactly_as_many_lines_as_it_may_have() -> None:
    lines = [f"own line {n}" for n in range(MAX_MEMORY_INDEX_LINES + 1)]
    assert fit_index("\n".join(lines[:-1]) + "\n").cut_lines == 0
    part = fit_index("\n".join(lines) + "\n")
    assert part.text.splitlines() == [*lines[: MAX_MEMORY_INDEX_LINES - 1], part.warning]
    assert part.cut_lines == 2
    one_long = fit_index(f"short\n{'x' * MAX_MEMORY_INDEX_BYTES}\n")
    assert one_long.text.splitlines() == ["short", one_long.warning]
    assert "1 line not shown" in one_long.warning


def test_topics_have_lines_of_their_own_up_to_a_number_and_the_others_share_one() -> None:
    keys = [f"topic{chr(97 + n)}-{m}.md" for n in range(26) for m in range(40)]
    groups = [line for line in made("", [*keys, "alone.md"][::-1]).splitlines() if is_group_line(line)]
    assert len(groups) == MAX_INDEX_GROUPS
    assert [" on " in line for line in groups] == [True] * (MAX_INDEX_GROUPS - 1) + [False]
