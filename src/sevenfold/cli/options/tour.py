"""How `sevenfold tour` is asked for."""

from __future__ import annotations

from argparse import ArgumentParser

TOUR_HELP = "watch the layers at work, offline, with the bill at the end"

TOUR_DESCRIPTION = """\
Plays a short session of the agent in a scratch repository, through the real
loop, and says what each layer does as it does it. Offline, no key: the model is
a script, served and billed by the simulator. At the end stands the bill, beside
that of the same session with the layers off.

Nothing of yours is read or written: repository, home and settings are made for
the tour and removed after it.
"""

TOUR_EXAMPLES = """\
examples:
  sevenfold tour
  sevenfold tour --fast     without the pauses for reading
"""


def add_tour_options(parser: ArgumentParser) -> None:
    parser.add_argument("--fast", action="store_true", help="do not pause for reading")
