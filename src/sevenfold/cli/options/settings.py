"""How `sevenfold settings` is asked for."""

from __future__ import annotations

from argparse import ArgumentParser

from sevenfold.cli.options.shared import add_json_option, add_project_option

SETTINGS_HELP = "show each setting, its value and where it came from"

SETTINGS_DESCRIPTION = """\
Shows every setting, its value, and where that came from. The sources, weakest first:

  the defaults
  <project>/.sevenfold/settings.toml         committed: may switch things off and lower limits, once you agree
  ~/.sevenfold/settings.toml                 yours, for every project
  <project>/.sevenfold/settings.local.toml   yours, for this project; keep it out of git
  the environment                            SEVENFOLD_TOOL_RESULTS_LIMIT_CHARS=30000
  keyword arguments                          from Python
  /etc/sevenfold/settings.toml               an operator's policy

A committed file can switch off what protects you or keeps the bill low, so most of it is ignored until you
agree to it: when `sevenfold chat` asks, or with --trust. An answer holds until the file changes.
"""

SETTINGS_EXAMPLES = """\
examples:
  sevenfold settings
  sevenfold settings window compact.auto_compact_pct
  sevenfold settings --project ~/src/app --json
  sevenfold settings --trust
"""


def add_settings_options(parser: ArgumentParser) -> None:
    parser.add_argument("keys", nargs="*", metavar="KEY", help="a section, or section.name; all if none")
    answer = parser.add_mutually_exclusive_group()
    answer.add_argument(
        "--trust", action="store_true", help="agree to the settings that the repository brings"
    )
    answer.add_argument("--refuse", action="store_true", help="refuse them, and do not be asked again")
    add_json_option(parser)
    add_project_option(parser)
