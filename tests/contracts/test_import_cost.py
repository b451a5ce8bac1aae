"""`import sevenfold` is light, quiet and leaves nothing behind."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

pytestmark = pytest.mark.gate

YARDSTICK = "json, dataclasses, pathlib, asyncio"
RUNS, MOST_RUNS = 9, 36
MOST_TIMES = 2
MOST_TIMES_A_LISTING = 2.5
"""It takes 2.1 times: a tenth of a second where nothing else runs."""
MOST_TIMES_A_SEARCH = 3.0
"""It takes 2.6 times, and so does a check."""

WATCHED = """
import json, sys
before, touched = set(sys.modules), []
CHANGING = (
    "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.truncate",
    "os.system", "os.exec", "os.fork", "os.posix_spawn", "subprocess.Popen", "socket.__new__",
)
WRITING = 1 | 2 | 64  # O_WRONLY, O_RDWR, O_CREAT
def watch(event, arguments):
    if event in CHANGING or (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING):
        touched.append([event, *map(str, arguments)])
sys.addaudithook(watch)
{code}
touched += ["thread"] * (len(sys._current_frames()) - 1)
sys.stderr.write(json.dumps({{"touched": touched, "loaded": sorted(set(sys.modules) - before)}}))
"""

COMMAND = """
import json, sys
from sevenfold.cli import main
code = main({arguments!r})
assert code in (0, 1), code
sys.stderr.write("\\n" + json.dumps(sorted(sys.modules)))
"""

OF_AGENTS = (
    "sevenfold.core.events.agent",
    "sevenfold.core.events.context",
    "sevenfold.core.events.learning",
    "sevenfold.core.requests",
    "sevenfold.layers.memory.recall",
    "asyncio",
    "sevenfold.agent",
    "sevenfold.core.tokens",
    "sevenfold.layers.compaction",
    "sevenfold.layers.memory.trust",
    "sevenfold.providers",
    "sevenfold.session.pipeline",
    "sevenfold.session.settings",
)
"""Packages and modules that a command over memories does without: they take longer to load than it runs."""

OF_CHANGES = (
    "sevenfold.core.events.memory",
    "sevenfold.core.events.store",
    "sevenfold.core.settings.sections",
    "sevenfold.core.text.facts",
    "sevenfold.layers.context",
    "sevenfold.layers.memory.rule_policy",
    "sevenfold.store.transcript.reader",
    "difflib",
    "html",
    "random",
    "secrets",
    "shlex",
    "socket",
    "textwrap",
    "uuid",
)
"""What a listing without rules does without besides: together a third of what it would take."""

OF_SESSIONS = (
    "sevenfold.agent",
    "sevenfold.core.messages",
    "sevenfold.core.settings.sections",
    "sevenfold.layers.context",
    "sevenfold.layers.memory.rule_policy",
    "sevenfold.layers.memory.search.encoders",
    "sevenfold.store.transcript.records",
    "asyncio",
    "numpy",
    "shutil",
)
"""What no command over memories needs as long as none of them is a rule, and no encoder is set up."""

EVERYTHING = """
import importlib, pkgutil, sevenfold
for module in pkgutil.walk_packages(sevenfold.__path__, "sevenfold."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""


def child(code: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a new interpreter that has an empty home and no settings, and writes no byte code."""
    outer = {name: value for name, value in os.environ.items() if not name.startswith("SEVENFOLD_")}
    places = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"), str(cwd))
    done = subprocess.run(
        [sys.executable, "-B", "-c", code],
        cwd=cwd,
        env={**outer, **places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def strangers(loaded: list[str]) -> list[str]:
    return [name for name in loaded if name.partition(".")[0] not in {"sevenfold", *sys.stdlib_module_names}]


@pytest.mark.parametrize("code", ["import sevenfold", EVERYTHING], ids=["import sevenfold", "every module"])
def test_import_loads_no_library_makes_no_file_and_prints_nothing(tmp_path: Path, code: str) -> None:
    done = child(WATCHED.format(code=code), tmp_path)
    seen = cast("dict[str, list[str]]", json.loads(done.stderr))
    assert done.stdout == ""
    assert "sevenfold" in seen["loaded"]
    assert strangers(seen["loaded"]) == []
    assert seen["touched"] == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "code",
    [
        "open('x', 'w')",
        "import os; os.mkdir('x')",
        "import socket; socket.socket()",
        "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()",
    ],
    ids=["file", "folder", "socket", "thread"],
)
def test_an_import_that_touches_something_is_found(tmp_path: Path, code: str) -> None:
    done = child(WATCHED.format(code=code), tmp_path)
    assert json.loads(done.stderr)["touched"] != []


def test_a_library_among_the_loaded_modules_is_found(tmp_path: Path) -> None:
    done = child(WATCHED.format(code="import pytest"), tmp_path)
    loaded = cast("list[str]", json.loads(done.stderr)["loaded"])
    assert "pytest" in strangers(loaded)


def remember(home: Path) -> None:
    arguments = ["memory", "add", "pnpm", "-m", "We use pnpm, not npm."]
    child(COMMAND.format(arguments=arguments), home)


def unneeded(arguments: list[str], cwd: Path, of: tuple[str, ...] = OF_AGENTS) -> list[str]:
    """What a command has loaded at its end of that which only an agent or a session needs."""
    done = child(COMMAND.format(arguments=arguments), cwd)
    loaded = cast("list[str]", json.loads(done.stderr.splitlines()[-1]))
    return [name for name in loaded if any(f"{name}.".startswith(f"{each}.") for each in of)]


@pytest.mark.parametrize(
    "arguments",
    [["memory", "list"], ["memory", "add", "tool", "-m", "We use pnpm."], ["memory", "log"]],
    ids=" ".join,
)
def test_a_command_over_memories_loads_no_agent_and_no_model(tmp_path: Path, arguments: list[str]) -> None:
    assert unneeded(arguments, tmp_path) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["memory", "list"],
        ["memory", "show", "pnpm"],
        ["memory", "add", "-m", "The build runs in a container."],
        ["memory", "search", "pnpm"],
        ["memory", "check"],
        ["memory", "blame", "pnpm"],
        ["memory", "diff"],
        ["memory", "undo"],
        ["memory", "rm", "pnpm"],
        ["memory", "purge", "--memory", "pnpm", "--yes"],
        ["memory", "export", "copies"],
        ["recall", "which package manager do we use?"],
    ],
    ids=" ".join,
)
def test_a_command_over_memories_loads_nothing_of_a_session(tmp_path: Path, arguments: list[str]) -> None:
    remember(tmp_path)
    assert unneeded(arguments, tmp_path, OF_SESSIONS) == []


@pytest.mark.parametrize("arguments", [["memory", "search", "pnpm"], ["recall", "pnpm"]], ids=" ".join)
def test_a_search_loads_nothing_that_checks_what_memories_claim(tmp_path: Path, arguments: list[str]) -> None:
    remember(tmp_path)
    assert unneeded(arguments, tmp_path, ("sevenfold.layers.memory.trust",)) == []


def test_a_check_of_addresses_that_loads_the_agent_is_found(tmp_path: Path) -> None:
    remember(tmp_path)
    assert "asyncio" in unneeded(["memory", "check", "--online"], tmp_path, OF_SESSIONS)


@pytest.mark.parametrize("arguments", [["memory", "list"], ["memory", "log"]], ids=" ".join)
def test_a_listing_loads_nothing_that_only_changes_need(tmp_path: Path, arguments: list[str]) -> None:
    assert unneeded(arguments, tmp_path, OF_CHANGES) == []


def times_the_yardstick(code: str, cwd: Path, most: float = 0) -> float:
    """Processor time of code, with compiled modules as for a user, beside that of four standard modules. The
    least of several turns: other work on the machine only adds. Of more turns while it is above `most`."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environ |= {"HOME": str(cwd), "PYTHONPYCACHEPREFIX": str(cwd / "compiled")}

    def seconds(timed: str) -> float:
        code = f"{timed}\nimport sys, time; sys.stderr.write(str(time.process_time()))"
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, check=True)
        return float(done.stderr)

    ours = theirs = float("inf")
    for turn in range(MOST_RUNS if most else RUNS):
        ours, theirs = min(ours, seconds(code)), min(theirs, seconds(f"import {YARDSTICK}"))
        if turn >= RUNS - 1 and ours < most * theirs:
            break
    return ours / theirs


def test_a_listing_takes_little_processor_time_beside_what_it_must_load(tmp_path: Path) -> None:
    listing = "from sevenfold.cli import main; main(['memory', 'list'])"
    assert times_the_yardstick(listing, tmp_path, MOST_TIMES_A_LISTING) < MOST_TIMES_A_LISTING


@pytest.mark.parametrize(
    "arguments", [["memory", "search", "pnpm"], ["memory", "check"], ["recall", "pnpm"]], ids=" ".join
)
def test_a_search_takes_little_processor_time_beside_what_it_must_load(
    tmp_path: Path, arguments: list[str]
) -> None:
    remember(tmp_path)
    search = f"from sevenfold.cli import main; main({arguments!r})"
    assert times_the_yardstick(search, tmp_path, MOST_TIMES_A_SEARCH) < MOST_TIMES_A_SEARCH


def test_a_command_that_takes_much_processor_time_is_found(tmp_path: Path) -> None:
    opening = "import sevenfold.agent.opening.open_agent"
    assert times_the_yardstick(opening, tmp_path) > MOST_TIMES_A_SEARCH


def test_a_command_that_loads_what_a_session_needs_is_found(tmp_path: Path) -> None:
    assert "sevenfold.session.settings" in unneeded(["settings", "compact.enabled"], tmp_path)


def test_import_takes_less_than_twice_the_time_of_four_standard_modules(tmp_path: Path) -> None:
    def seconds(modules: str) -> float:
        timed = f"import time; t = time.perf_counter(); import {modules}; print(time.perf_counter() - t)"
        return float(child(timed, tmp_path).stdout)

    # Turn about, so that a machine that slows down slows both.
    pairs = [(seconds("sevenfold"), seconds(YARDSTICK)) for _ in range(RUNS)]
    ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    assert ours < MOST_TIMES * theirs, f"{ours * 1e3:.1f} ms against {theirs * 1e3:.1f} ms"
