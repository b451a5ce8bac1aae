"""`sevenfold doctor`: what the set-up lacks, and what to do about it."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import cast

from sevenfold.cli.formatting import format_count
from sevenfold.cli.inspect.doctor_finding import DoctorFinding, FindingLevel
from sevenfold.cli.inspect.doctor_machine import check_api_keys, check_programs, check_python, check_sandbox
from sevenfold.cli.inspect.doctor_memory import check_memory
from sevenfold.cli.inspect.doctor_store import (
    check_home,
    check_project,
    check_settings,
    check_sockets,
    check_spend,
)
from sevenfold.cli.screen import Screen, TableCell, Tone
from sevenfold.core.errors import InputError
from sevenfold.core.settings.sandbox import SandboxSettings

_TONES: dict[FindingLevel, Tone] = {"fine": "plain", "note": "faint", "worry": "warning", "broken": "error"}


def run_doctor(options: Namespace, screen: Screen) -> int:
    project = cast("Path", options.project)
    if not project.is_dir():
        raise InputError(f"--project {str(project)!r} is no folder; name the project's folder, or one in it")
    findings = check_setup(project)
    if options.json:
        screen.show_json([asdict(finding) for finding in findings])
    else:
        _show(findings, screen)
    return 1 if any(finding.level == "broken" for finding in findings) else 0


def check_setup(project: Path) -> list[DoctorFinding]:
    """Every check, cheapest first; one that needs settings is left out where they cannot be read."""
    environ = os.environ
    findings = [*check_python(), *check_programs(environ), *check_api_keys(environ)]
    read = check_settings(project, environ)
    findings += read.findings
    if read.settings is not None:
        findings += [
            *check_home(read.settings, environ),
            *check_project(project, read.settings, environ),
            *check_memory(project, read.settings, environ),
            *check_sockets(read.settings, environ),
            *check_spend(read.settings, environ),
            *check_sandbox(read.settings.of(SandboxSettings), environ),
        ]
    return findings


def _show(findings: Sequence[DoctorFinding], screen: Screen) -> None:
    screen.show_table(
        [
            TableCell(finding.level, _TONES[finding.level]),
            TableCell(finding.area, "strong"),
            TableCell(finding.said),
        ]
        for finding in findings
    )
    acted = [finding for finding in findings if finding.advice]
    if acted:
        screen.show_line("")
        screen.show_line("What to do", "strong")
        for finding in acted:
            screen.show_line(f"  {finding.area}: {finding.advice}")
    broken = sum(finding.level == "broken" for finding in findings)
    worries = sum(finding.level == "worry" for finding in findings)
    screen.show_line("")
    if broken:
        told = f"{format_count(broken, 'thing')} broken" + (f", {worries} to look at" if worries else "")
        screen.show_line(f"{told}.", "error")
    elif worries:
        screen.show_line(f"Nothing is broken; {format_count(worries, 'thing')} to look at.", "warning")
    else:
        screen.show_line("Everything is in order.")
