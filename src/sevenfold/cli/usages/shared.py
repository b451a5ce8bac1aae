"""Options that several commands have, said once."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path

MAX_PORT = 65_535


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


def read_port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= MAX_PORT):
        raise ArgumentTypeError(f"{text!r} is no port; expected 0 (any free one) to {MAX_PORT}")
    return int(text)
