"""How `sevenfold doctor` is asked for."""

from __future__ import annotations

from argparse import ArgumentParser

from sevenfold.cli.options.shared import add_json_option, add_project_option

DOCTOR_HELP = "check the set-up and say what to do about each finding"

DOCTOR_DESCRIPTION = """\
Checks what Sevenfold stands on: the interpreter and its libraries, keys,
settings, where files are kept and whether they can be written, disk space,
locks, transcripts, mail, the sandbox, spending, and what went wrong lately.
Says what to do about each finding. Offline; it changes nothing and shows no
secret. Ends with 1 if something is broken.
"""

DOCTOR_EXAMPLES = """\
examples:
  sevenfold doctor
  sevenfold doctor --project ~/src/app
  sevenfold doctor --json | jq '.[] | select(.level == "broken")'
"""


def add_doctor_options(parser: ArgumentParser) -> None:
    add_json_option(parser)
    add_project_option(parser)
