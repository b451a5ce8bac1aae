"""Other people's scanners on the same notes. Each is run as its own command says, in a process of its own."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory


@dataclass(frozen=True, slots=True)
class Peer:
    name: str
    command: tuple[str, ...]
    """Run beside a folder `notes`; its findings name the files on standard output or in `found`."""
    packages: Path
    """Where the package is installed."""


@dataclass(frozen=True, slots=True)
class PeerRun:
    blocked: frozenset[str]
    """The notes in which something was found."""
    cpu_seconds: float
    is_cut_short: bool = False
    """Whether it did not finish in `MOST_SECONDS`: it tells nothing then."""


MOST_SECONDS = 1200


def peers_in(folder: Path) -> list[Peer]:
    """Those that are there: `pip install --target FOLDER/NAME NAME` puts one there."""
    python = (sys.executable, "-m")
    kingfisher = str(folder / "kingfisher-bin/kingfisher/bin/kingfisher")
    commands = {
        "detect-secrets": (*python, "detect_secrets", "scan", "--all-files", "notes"),
        "credsweeper": (*python, "credsweeper", "--path", "notes", "--save-json", "found"),
        "kingfisher-bin": (kingfisher, "scan", "notes", "--format", "json", "--no-validate"),
    }
    return [
        Peer(name, command, folder / name) for name, command in commands.items() if (folder / name).is_dir()
    ]


def run_peer(peer: Peer, notes: Mapping[str, str]) -> PeerRun:
    with TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "notes").mkdir()
        for name, text in notes.items():
            (folder / "notes" / f"{name}.md").write_text(text, encoding="utf-8")
        before = _children_seconds()
        try:
            said = _said(peer.command, folder, peer.packages)
        except subprocess.TimeoutExpired:
            return PeerRun(frozenset(), _children_seconds() - before, is_cut_short=True)
        seconds = _children_seconds() - before
        if (folder / "found").exists():
            said += (folder / "found").read_text(encoding="utf-8")
    return PeerRun(frozenset(re.findall(r"notes/([a-z0-9]+)\.md", said)) & notes.keys(), seconds)


def _said(command: Sequence[str], folder: Path, packages: Path) -> str:
    env = {**os.environ, "PYTHONPATH": str(packages)}
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=MOST_SECONDS
    )
    return done.stdout


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
