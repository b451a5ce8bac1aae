"""`sevenfold replay --proxy`: what went through a proxy, also through those that still run."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import cast

from sevenfold.cli.proxy import PROXY_FOLDER
from sevenfold.cli.screen import Screen
from sevenfold.core.errors import FileMissing, InputError
from sevenfold.core.json import JsonObject, thaw
from sevenfold.proxy.receipt import LedgerSummary, list_ledgers, read_proxy_ledger, render_ledger_line
from sevenfold.store.files.folder import Folder

LEDGER_LOOK_SECONDS = 2.0
"""Between two looks at the ledgers."""

_OTHER_OPTIONS = ("html", "open", "svg", "by", "csv", "anonymous", "reprice", "policy", "jobs", "since")
"""Of `replay`, for transcripts."""


@dataclass(frozen=True, slots=True)
class _Session:
    summary: LedgerSummary
    lines: Sequence[JsonObject]
    """Its requests, where they are shown: those of a session that runs, or that was named."""


def show_proxied(
    options: Namespace,
    home: Path,
    screen: Screen,
    wait: Callable[[float], object] = time.sleep,
    rounds: int = 0,
) -> int:
    """All sessions, and the requests of those that run or were named; with `--watch` again when one grows."""
    for name in _OTHER_OPTIONS:
        if getattr(options, name) is not None and getattr(options, name) is not False:
            raise InputError(
                f"--{name} with --proxy: it is for transcripts; expected --json, --limit or --watch"
            )
    names = [Path(path).name for path in cast("Sequence[str]", options.paths)]
    seen: list[_Session] | None = None
    for look in count(1):
        found = _read_sessions(home / PROXY_FOLDER, names, cast("int | None", options.limit))
        if found != seen:
            _show(found, screen, as_json=bool(options.json))
            screen.flush()
        seen = found
        if not options.watch or look == rounds:
            break
        wait(LEDGER_LOOK_SECONDS)
    return 0 if seen else 1


def _read_sessions(place: Path, names: Sequence[str], limit: int | None) -> list[_Session]:
    try:
        folder = Folder.open(place)
    except FileMissing:
        return []
    with folder:
        known = list_ledgers(folder)
        missing = [name for name in names if name not in {one.name for one in known}]
        if missing:
            raise InputError(
                f"there is no ledger {missing[0]!r} in {place}; `sevenfold replay --proxy` lists them"
            )
        chosen = [one for one in known if not names or one.name in names][:limit]
        return [
            _Session(one, read_proxy_ledger(folder, one.name) if names or one.is_live else ())
            for one in chosen
        ]


def _show(sessions: Sequence[_Session], screen: Screen, *, as_json: bool) -> None:
    if as_json:
        screen.show_json(
            [
                {
                    **one.summary.to_json(),
                    **({"entries": [thaw(line) for line in one.lines]} if one.lines else {}),
                }
                for one in sessions
            ]
        )
        return
    for one in sessions:
        screen.show(one.summary.render())
        for line in one.lines:
            screen.show(f"  {render_ledger_line(line)}")
    if not sessions:
        screen.fail("no request went through a proxy yet; begin with `sevenfold run AGENT`")
