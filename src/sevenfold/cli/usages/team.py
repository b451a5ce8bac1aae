"""How `sevenfold team` is asked for."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from sevenfold.cli.usages.shared import CommandAction, add_actions, add_no_options

TEAM_HELP = "share memories with a team through a server"

TEAM_DESCRIPTION = """\
Memories under `team/` are shared with everybody who has joined the same
repository on a server of `sevenfold serve`. Sessions pull before they begin and
send what is new; these commands do it by hand. Nothing is overwritten that
somebody else has not seen, and nothing with a secret in it leaves the machine.
`sevenfold team ACTION --help` says more; without an action, the state is shown.
"""

TEAM_EXAMPLES = """\
examples:
  sevenfold team join https://memory.example.org     asks for a token, or signs in with a code
  sevenfold team                                     joined what, and what waits to be sent
  sevenfold team push
  sevenfold team conflicts                           two texts of one memory, side by side
  sevenfold team resolve deploy --take copy          keep the text of the copy, for all
  sevenfold team delete old-plan                     delete a memory for everybody
"""


def add_team_options(parser: ArgumentParser) -> None:
    parser.set_defaults(action="status")
    add_actions(parser, TEAM_ACTIONS)


def _join(parser: ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", help="the server: https://memory.example.org")
    parser.add_argument("--repo", default="", metavar="NAME", help="which repository, by name or id")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--token-stdin", action="store_true", help="read the token from standard input")
    how.add_argument("--code", action="store_true", help="sign in with a code that an admin approves")


def _resolve(parser: ArgumentParser) -> None:
    parser.add_argument("memory", metavar="MEMORY", help="the memory, or the conflict copy beside it")
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--take", choices=("original", "copy"), help="whose text stays under the memory's name")
    how.add_argument("--text", type=Path, metavar="FILE", help="a file with the text that both become")


def _delete(parser: ArgumentParser) -> None:
    parser.add_argument("memories", nargs="+", metavar="MEMORY", help="its name in the team's folder")


def _allow(parser: ArgumentParser) -> None:
    parser.add_argument("fingerprint", metavar="FINGERPRINT", help="as told with the finding")
    parser.add_argument("--reason", required=True, metavar="TEXT", help="why it may be shared")


def _leave(parser: ArgumentParser) -> None:
    parser.add_argument("--forget-token", action="store_true", help="and remove the server's token from here")


TEAM_ACTIONS = (
    CommandAction(
        "join",
        "join a repository on a server",
        "Joins this project to a repository on a server. The token is pasted, read\n"
        "from standard input, or had by a code; it is kept for you alone in\n"
        "Sevenfold's home, and never in the repository. Ends with a first exchange.",
        _join,
    ),
    CommandAction("status", "joined what, and what waits (the default)", "Asks no server.", add_no_options),
    CommandAction(
        "pull", "take what is new there", "Takes what is new on the server; sends nothing.", add_no_options
    ),
    CommandAction(
        "push",
        "send what is new here",
        "Sends what is new here, having taken what is new there.",
        add_no_options,
    ),
    CommandAction(
        "conflicts",
        "memories that two people changed",
        "Both texts of each, as a difference.",
        add_no_options,
    ),
    CommandAction(
        "resolve",
        "settle a conflict, for all",
        "Keeps one of the two texts, or a third, under the memory's name, and deletes\n"
        "the copy for everybody.",
        _resolve,
    ),
    CommandAction(
        "delete",
        "delete a memory for everybody",
        "Deletes a shared memory here, and for everybody at the next exchange. A\n"
        "change that somebody makes at the same time survives, and that is said.",
        _delete,
    ),
    CommandAction(
        "allow",
        "let a finding pass that is no secret",
        "Says that something which looks like a secret may be shared, with a reason.\n"
        "The server has its own list: an admin allows it there.",
        _allow,
    ),
    CommandAction(
        "leave", "leave the server; files stay", "Forgets the server. The files stay as they are.", _leave
    ),
)
"""In the order in which `--help` lists them."""
