"""The page as text: what is in it, what cannot be in it, and how it gets onto the disk."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from base64 import b64encode
from dataclasses import replace
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.cli.replay import contents, view
from sevenfold.core.errors import AccessDenied, DiskFull, InputError
from sevenfold.replay.context_fill import SeriesPoint
from sevenfold.replay.page import (
    MAX_PAGE_POINTS,
    MAX_UNREADABLE_ROWS,
    PAGE_OPENING,
    PAGE_SCRIPTS,
    PAGE_STYLES,
    build_page,
    describe_page,
    escape_html_json,
    resolve_page_path,
    write_page,
)
from sevenfold.replay.report import FileReport, LineCounts, ReplayReport, build_replay_report
from sevenfold.store.foreign.transcripts import UnreadableFile
from tests.replay.reports import (
    HOSTILE,
    START,
    Story,
    at,
    broke,
    climb,
    hostile_report,
    large_report,
    report_of,
    rich_report,
)

ASSETS = Path(str(files("sevenfold.replay.page") / "assets"))
DANGEROUS = re.compile("[<>&\u2028\u2029]")
MOST_BYTES = 5_000_000
OLD, NEW = "<!doctype html>old", "<!doctype html>new ✓"

Row = list[object]


def page_of(report: ReplayReport) -> str:
    return build_page(report, made_at=START)


def payload_of(report: ReplayReport) -> dict[str, object]:
    return describe_page(report, made_at=START)


def sessions_of(report: ReplayReport) -> list[dict[str, object]]:
    return cast("list[dict[str, object]]", payload_of(report)["sessions"])


def rows(session: dict[str, object], name: str) -> list[Row]:
    return cast("list[Row]", session[name])


def column(session: dict[str, object], name: str) -> list[int | None]:
    """As the page's script reads it."""
    packed = cast("dict[str, str]", session["series"])[name]
    last, found = 0, list[int | None]()
    for step in packed.split():
        last += 0 if step == "-" else int(step)
        found.append(None if step == "-" else last)
    return found


def elements(page: str, tag: str) -> list[str]:
    """The content of each such element. A parser is not needed: data cannot hold a tag."""
    return re.findall(rf"<{tag}\b[^>]*>(.*?)</{tag}>", page, re.DOTALL)


@given(st.recursive(st.text() | st.integers() | st.none(), st.lists, max_leaves=20))
def test_any_data_survives_and_none_of_it_can_end_an_element(value: object) -> None:
    text = escape_html_json(value)
    assert json.loads(text) == value
    assert not DANGEROUS.search(text)
    assert text.isascii()


def test_a_name_that_is_no_unicode_text_is_no_obstacle(tmp_path: Path) -> None:
    page = page_of(report_of(Story(project=os.fsdecode(b"/srv/caf\xe9"))))
    assert write_page(tmp_path / "p.html", page).read_text(encoding="utf-8") == page


def test_what_strangers_wrote_is_in_the_data_and_nowhere_else() -> None:
    page = page_of(hostile_report())
    scripts = elements(page, "script")
    assert len(scripts) == 2
    assert "<img src=x" not in page
    assert "<svg onload" not in page
    data, code = scripts
    told = cast("list[dict[str, str]]", json.loads(data)["sessions"])
    assert {session["id"] for session in told} == {HOSTILE, f"other {HOSTILE}"}
    assert "owned" not in page.replace(data, "")
    assert "owned" not in code


def test_the_policy_lets_nothing_in_but_our_own_style_and_script() -> None:
    page = page_of(rich_report())
    found = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert found
    rules = dict(rule.split(" ", 1) for rule in found[1].split("; "))
    style, script = elements(page, "style")[0], elements(page, "script")[1]
    assert rules == {
        "default-src": "'none'",
        "style-src": digest(style),
        "script-src": digest(script),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert "unsafe" not in page


def digest(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_page_names_no_other_place() -> None:
    page = page_of(rich_report())
    assert set(re.findall(r"https?://[^\s'\"<>)]+", page)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|url\(|\bsrc=|@font-face", page)
    assert all(link.startswith(("#", "data:")) for link in re.findall(r'href="([^"$]*)"', page))


def test_the_scripts_write_text_and_never_markup() -> None:
    assert {*PAGE_SCRIPTS, *PAGE_STYLES, "template.html"} == {path.name for path in ASSETS.iterdir()}
    for path in ASSETS.iterdir():
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 500
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(|Function\(", text)
        if path.suffix == ".js":
            assert not re.search(r"</script|<!--|fetch\(|XMLHttp|import\(|localStorage|cookie", text)


def test_the_page_has_the_terminals_words_for_every_cause_and_kind() -> None:
    words = (ASSETS / "figures.js").read_text(encoding="utf-8")
    for cause, label in view.CAUSE_LABELS.items():
        assert re.search(rf'^  "?{cause}"?: \{{$', words, re.MULTILINE), cause
        assert f'long: "{label}"' in words
    for kind, label in contents.FILL_KIND_LABELS.items():
        assert re.search(rf'^  {kind}: "{label}"', words, re.MULTILINE | re.IGNORECASE), kind


@pytest.mark.story
def test_five_hundred_long_sessions_are_less_than_five_megabytes() -> None:
    report = large_report(500)
    page = page_of(report)
    assert len(page.encode()) < MOST_BYTES
    described = sessions_of(report)
    assert len(described) == 500
    assert sum(len(column(session, "call")) for session in described) <= MAX_PAGE_POINTS


def test_a_thinned_plot_keeps_its_ends_and_its_largest_call() -> None:
    series = replace(climb(320)[100], prompt_tokens=999_999)
    points = (*climb(320)[:100], series, *climb(320)[101:])
    many = [Story(name=f"s{place}", series=points) for place in range(700)]
    first = sessions_of(report_of(*many))[0]
    assert len(column(first, "call")) < 320
    assert (column(first, "call")[0], column(first, "call")[-1]) == (0, 319)
    assert 999_999 in column(first, "prompt")


def test_a_few_sessions_keep_every_point() -> None:
    assert column(sessions_of(report_of(Story(series=climb(320))))[0], "call") == list(range(320))


@given(st.lists(st.tuples(st.integers(0, 10**7), st.none() | st.integers(0, 10**6)), min_size=1, max_size=20))
def test_a_packed_plot_reads_back_whatever_its_values(calls: list[tuple[int, int | None]]) -> None:
    points = tuple(
        SeriesPoint(
            call=call, at=None if minutes is None else at(minutes), prompt_tokens=size, read_tokens=size // 2
        )
        for call, (size, minutes) in enumerate(calls)
    )
    start = next((point.at for point in points if point.at), None)
    story = replace(Story(series=points).tell(), first_at=start)
    report = build_replay_report(
        [FileReport(path=Path("/srv/s.jsonl"), agent="claude-code", lines=LineCounts(), sessions=(story,))]
    )
    session = sessions_of(report)[0]
    assert column(session, "prompt") == [size for size, _ in calls]
    assert column(session, "read") == [size // 2 for size, _ in calls]
    first = next((minutes for _, minutes in calls if minutes is not None), 0)
    assert column(session, "at") == [None if m is None else 60 * (m - first) for _, m in calls]


def test_dollars_of_the_sessions_add_up_to_the_total() -> None:
    report = rich_report()
    described = payload_of(report)
    totals = [cast("dict[str, list[float]]", session["total"]) for session in sessions_of(report)]
    whole = cast("dict[str, list[float]]", described["total"])["usd"]
    for kind, dollars in enumerate(whole):
        assert dollars == pytest.approx(sum(total["usd"][kind] for total in totals))
    assert sum(whole) == pytest.approx(11.0)


def test_a_break_is_drawn_at_the_call_that_paid_for_it() -> None:
    session = sessions_of(rich_report())[0]
    assert [item[0] for item in rows(session, "breaks")] == [20, 33, 40]
    assert [(item[0], item[2]) for item in rows(session, "cuts")] == [(33, "compaction"), (50, "clearing")]


def test_a_break_within_the_same_second_is_a_gap_of_zero() -> None:
    lost = replace(broke(3), gap=timedelta(0), life=timedelta(0))
    report = report_of(Story(series=climb(5), breaks=(lost,)))
    assert rows(sessions_of(report)[0], "breaks")[0][5:] == [0, 0]
    assert page_of(report).startswith("<!doctype html>")


def test_without_times_breaks_are_drawn_at_the_marks_in_order() -> None:
    series = climb(30, {4: "break", 9: "compaction", 20: "break"}, has_times=False)
    breaks = [replace(broke(0, cause), at=None) for cause in ("idle", "compaction", "unexplained")]
    session = sessions_of(report_of(Story(series=series, breaks=tuple(breaks))))[0]
    assert [item[0] for item in rows(session, "breaks")] == [4, 9, 20]
    assert [item[1] for item in rows(session, "breaks")] == [None, None, None]


def test_a_break_that_no_point_shows_is_still_listed() -> None:
    lost = replace(broke(0), at=None)
    session = sessions_of(report_of(Story(series=climb(5, has_times=False), breaks=(lost,))))[0]
    assert rows(session, "breaks")[0][0] is None


def test_a_clock_that_was_set_back_puts_no_mark_off_the_plot() -> None:
    points = climb(10)
    jumped = (*points[:5], *(replace(point, at=START) for point in points[5:]))
    session = sessions_of(report_of(Story(series=jumped, breaks=(broke(8),))))[0]
    assert rows(session, "breaks")[0][0] == 9


def test_a_result_names_its_session() -> None:
    described = payload_of(rich_report())
    assert [item[0] for item in cast("list[Row]", described["costly_results"])] == [0, 0]


def test_many_unreadable_files_are_counted_though_not_all_are_named() -> None:
    bad = [UnreadableFile(Path(f"/srv/{place}.jsonl"), "Permission denied") for place in range(1_000)]
    described = payload_of(report_of(Story(), unreadable=bad))
    assert described["unreadable_count"] == 1_000
    assert len(cast("list[Row]", described["unreadable"])) == MAX_UNREADABLE_ROWS


def test_an_empty_report_is_a_page_too() -> None:
    assert json.loads(elements(page_of(report_of()), "script")[0])["sessions"] == []


def test_the_page_is_written_and_written_over(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    assert write_page(target, OLD) == target.resolve()
    assert write_page(target, NEW) == target.resolve()
    assert target.read_text(encoding="utf-8") == NEW
    assert os.listdir(tmp_path) == ["page.html"]


def test_a_page_that_is_there_keeps_its_mode_and_a_new_one_takes_the_usual(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    target = tmp_path / "page.html"
    plain = tmp_path / "plain"
    plain.touch()
    write_page(target, OLD)
    assert target.stat().st_mode == plain.stat().st_mode
    target.chmod(0o640)
    write_page(target, NEW)
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_new_page_in_a_folder_of_the_users_alone_is_theirs_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    assert write_page(tmp_path / "page.html", OLD).stat().st_mode & 0o777 == 0o600


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    link, real = tmp_path / "link.html", tmp_path / "real.html"
    link.symlink_to(real)
    assert write_page(link, "one") == real
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8") == "one"


def test_a_transcript_named_by_mistake_is_not_written_over(tmp_path: Path) -> None:
    log = tmp_path / "session.jsonl"
    log.write_text('{"type": "user"}\n')
    with pytest.raises(InputError, match="is there and is no page, so it is not written over"):
        write_page(log, NEW)
    assert log.read_text() == '{"type": "user"}\n'
    log.write_text("")
    assert write_page(log, NEW).read_text(encoding="utf-8") == NEW


def test_every_page_begins_as_one_that_may_be_written_over() -> None:
    assert page_of(report_of()).encode().startswith(PAGE_OPENING)


@pytest.mark.parametrize("name", ["", ".", "sub/.."])
def test_a_folder_is_not_written_over(tmp_path: Path, name: str) -> None:
    (tmp_path / "sub").mkdir()
    with pytest.raises(InputError, match="is a folder; name a file in it"):
        write_page(tmp_path / name, "page")
    assert os.listdir(tmp_path) == ["sub"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the folder '.*/nowhere' does not exist; make it first"):
        resolve_page_path(tmp_path / "nowhere" / "page.html")


@pytest.mark.parametrize("name", ["loop", "nul\0byte", "w" * 300])
def test_a_name_that_cannot_be_used_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(InputError, match="cannot be used"):
        resolve_page_path(tmp_path / name)


def test_the_home_of_nobody_is_told() -> None:
    with pytest.raises(InputError, match="cannot be used"):
        resolve_page_path(Path("~no-such-person/page.html"))


def test_what_is_no_plain_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is no plain file"):
        write_page(tmp_path / "pipe", "page")
    with pytest.raises(InputError, match="is no plain file"):
        write_page(Path(os.devnull), "page")


@pytest.mark.parametrize(("number", "kind"), [(errno.ENOSPC, DiskFull), (errno.EACCES, AccessDenied)])
def test_a_failed_write_leaves_the_old_page_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception]
) -> None:
    target = tmp_path / "page.html"
    write_page(target, OLD)

    def fail(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(kind, match=r"cannot write the page '.*page\.html'"):
        write_page(target, NEW)
    assert target.read_text(encoding="utf-8") == OLD
    assert os.listdir(tmp_path) == ["page.html"]
