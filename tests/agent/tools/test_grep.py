"""grep finds lines in time, whatever the pattern, and shows them alike by ripgrep or without."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sevenfold.agent.tools import search as search_module
from sevenfold.agent.tools.search import MAX_GREP_LINES, GrepTool, find_ripgrep
from sevenfold.core.errors import InputError
from sevenfold.core.json import freeze_object
from sevenfold.core.tool_kinds import ToolContext
from tests.agent.tools.places import call, fault_of, make_place, text_of

RIPGREP = shutil.which("rg")

STAND_IN = """#!/bin/sh
cat <<'END'
{"type":"begin","data":{"path":{"text":"./a.py"}}}
{"type":"context","data":{"path":{"text":"./a.py"},"lines":{"text":"# before\\r\\n"},"line_number":1}}
{"type":"match","data":{"path":{"text":"./a.py"},"lines":{"text":"needle\\n"},"line_number":2}}
{"type":"end","data":{"path":{"text":"./a.py"},"stats":{}}}
{"type":"begin","data":{"path":{"text":"./b/.env"}}}
{"type":"match","data":{"path":{"text":"./b/.env"},"lines":{"text":"needle\\n"},"line_number":1}}
{"type":"end","data":{"path":{"text":"./b/.env"},"stats":{}}}
{"type":"summary","data":{}}
END
"""
"""What ripgrep 13 prints."""


@pytest.fixture
def place(tmp_path: Path) -> ToolContext:
    return make_place(tmp_path)


def put(place: ToolContext, **files: str | bytes) -> None:
    for name, data in files.items():
        path = place.root / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)


def test_lines_come_with_their_file_and_number(place: ToolContext) -> None:
    put(place, a_py="one\nneedle 1\r\nthree\n", b__c_py="Needle 2\n", d_md="needle 3")
    assert text_of(call(GrepTool(), place, pattern="needle")) == "a.py:2:needle 1\nd.md:1:needle 3"
    assert text_of(call(GrepTool(), place, pattern=r"needle \d$", ignore_case=True, glob="*.py")) == (
        "a.py:2:needle 1\nb/c.py:1:Needle 2"
    )
    assert text_of(call(GrepTool(), place, pattern="needle", output="files")) == "a.py\nd.md"
    assert text_of(call(GrepTool(), place, pattern="e", output="count", path="a.py")) == "a.py: 3"
    assert "nothing" in text_of(call(GrepTool(), place, pattern="absent"))


def test_context_shows_what_stands_around_and_gaps_between(place: ToolContext) -> None:
    put(place, a_txt="1\nx\n3\n4\n5\nx\n7\n")
    shown = text_of(call(GrepTool(), place, pattern="x", context=1))
    assert shown == "a.txt-1-1\na.txt:2:x\na.txt-3-3\n--\na.txt-5-5\na.txt:6:x\na.txt-7-7"


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*$", "(.*)*(.*)*(.*)*b", "(?:a?){60}a{60}$"])
def test_a_hostile_pattern_ends_when_its_time_is_up(
    pattern: str, place: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(place, a_txt="a" * 60 + "c\n", b_txt="x\n")
    monkeypatch.setattr(search_module, "MAX_SEARCH_SECONDS", 0.5)
    assert "cut short" in text_of(call(GrepTool(), place, pattern=pattern))


def test_a_search_that_is_cancelled_leaves_no_process(
    place: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(place, a_txt="a" * 60 + "c\n")
    started: list[asyncio.subprocess.Process] = []
    running = asyncio.Event()
    start = asyncio.create_subprocess_exec

    async def noted(*command: str, **options: Any) -> asyncio.subprocess.Process:
        started.append(await start(*command, **options))
        running.set()
        return started[0]

    async def cut_short() -> None:
        search = asyncio.create_task(GrepTool().run(freeze_object({"pattern": "(a+)+$"}), place, print))
        await running.wait()
        search.cancel()
        with pytest.raises(asyncio.CancelledError):
            await search

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    asyncio.run(cut_short())
    assert started[0].returncode is not None


def test_a_pattern_that_is_none_says_why(place: ToolContext) -> None:
    put(place, a_txt="x")
    assert "cannot be used" in fault_of(call(GrepTool(), place, pattern="(x"))
    with pytest.raises(InputError, match="one line"):
        call(GrepTool(), place, pattern="a\nb")
    with pytest.raises(InputError, match="one of files"):
        call(GrepTool(), place, pattern="a", output="json")
    assert "not there" in fault_of(call(GrepTool(), place, pattern="a", path="none"))


def test_only_plain_text_inside_is_searched(place: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("needle")
    (place.root / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(place.root / "fifo")
    put(place, a_bin=b"\0needle", b_txt=b"\xff needle")
    assert text_of(call(GrepTool(), place, pattern="needle")) == "b.txt:1:\ufffd needle"
    assert "outside" in fault_of(call(GrepTool(), place, pattern="needle", path="link"))
    assert "nothing" in text_of(call(GrepTool(), place, pattern="needle", path="fifo"))


def test_what_rules_hide_and_git_ignores_is_not_searched(place: ToolContext) -> None:
    put(place, a_txt="needle", _env="needle", build__x_txt="needle", _gitignore="build/")
    subprocess.run(["git", "init", "-q"], cwd=place.root, check=True)
    hidden = GrepTool(lambda real: real.endswith("env"))
    assert text_of(call(hidden, place, pattern="needle")) == "a.txt:1:needle"
    assert "nothing" in text_of(call(hidden, place, pattern="needle", path=".env"))


def test_a_long_answer_is_cut_and_counted(place: ToolContext) -> None:
    put(place, a_txt="needle\n" * 1_000 + "x" * 5_000 + "needle")
    lines = text_of(call(GrepTool(), place, pattern="needle")).split("\n")
    assert (len(lines), "1,001 lines" in lines[-1]) == (MAX_GREP_LINES + 1, True)
    shown = text_of(call(GrepTool(), place, pattern="needle", limit=2)).split("\n")
    assert len(shown) == 3
    assert len(text_of(call(GrepTool(), place, pattern="xneedle"))) < 600


def test_ripgreps_lines_are_shown_as_our_own(place: ToolContext, tmp_path: Path) -> None:
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "rg").write_text(STAND_IN)
    (bin_folder / "rg").chmod(0o755)
    there = replace(place, environ={"PATH": str(bin_folder)})
    hidden = GrepTool(lambda real: real.endswith(".env"))
    assert text_of(call(hidden, there, pattern="needle", context=1)) == "a.py-1-# before\na.py:2:needle"


def test_a_ripgrep_of_the_project_is_not_run(place: ToolContext) -> None:
    (place.root / "rg").write_text(STAND_IN)
    (place.root / "rg").chmod(0o755)
    for path in (str(place.root), ".", "", f"relative:{place.root}"):
        assert find_ripgrep(place.root, {"PATH": path}) is None


@pytest.mark.parametrize("folder", ["/nowhere", *({str(Path(RIPGREP).parent)} if RIPGREP else ())])
def test_a_search_finds_the_same_with_ripgrep_or_without(folder: str, place: ToolContext) -> None:
    put(place, a_py="one\nneedle\n", b__c_txt="x needle\n", _hidden="needle\n", d_bin=b"\0needle\n")
    there = replace(place, environ={"PATH": folder})
    found = {
        "": ".hidden:1:needle\na.py:2:needle\nb/c.txt:1:x needle",
        "files": ".hidden\na.py\nb/c.txt",
        "count": ".hidden: 1\na.py: 1\nb/c.txt: 1",
    }
    for output, shown in found.items():
        assert text_of(call(GrepTool(), there, pattern="need.e", output=output or "content")) == shown
    assert (
        text_of(call(GrepTool(), there, pattern="NEED", ignore_case=True, glob="*.{py,rs}"))
        == "a.py:2:needle"
    )
    assert (
        text_of(call(GrepTool(), there, pattern="^need", context=1, glob="*.py"))
        == "a.py-1-one\na.py:2:needle"
    )
    assert "cannot be used" in fault_of(call(GrepTool(), there, pattern="(x"))
