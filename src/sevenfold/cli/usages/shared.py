"""Options that several commands have, said once."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path


def add_json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_project(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--project",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="the project's folder, or one in it (here)",
    )
