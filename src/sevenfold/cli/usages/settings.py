"""How `sevenfold settings` is asked for."""

from __future__ import annotations

from argparse import ArgumentParser

from sevenfold.cli.usages.shared import add_json, add_project

HELP = "show each setting, its value and where it came from"

DESCRIPTION = """\
Shows every setting, its value, and where that came from. The sources, weakest first:

  the defaults
  <project>/.sevenfold/settings.toml         committed: may switch layers off and lower limits, no more
  ~/.sevenfold/settings.toml                 yours, for every project
  <project>/.sevenfold/settings.local.toml   yours, for this project; keep it out of git
  the environment                            SEVENFOLD_TOOL_RESULTS_LIMIT_CHARS=30000
  keyword arguments                          from Python
  /etc/sevenfold/settings.toml               an operator's policy
"""

EXAMPLES = """\
examples:
  sevenfold settings
  sevenfold settings window compact.auto_compact_pct
  sevenfold settings --project ~/src/app --json
"""


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("keys", nargs="*", metavar="KEY", help="a section, or section.name; all if none")
    add_json(parser)
    add_project(parser)
