"""Arguments of `install`, `hook`, `resident` and `completion`."""

from __future__ import annotations

from argparse import ArgumentParser

from sevenfold.cli.options import add_json_option

INSTALL_HELP = "add memory and rules to Claude Code, Codex and other agents"

INSTALL_DESCRIPTION = """\
Adds hooks and an MCP server to the configuration of another agent, for your
user: recall before a prompt, rules before a tool, learning after a turn.
Claude Code and Codex get hooks and the server, and Claude Code some slash
commands; the other agents get the server. Shows every change as a diff, keeps
a copy of each file, and takes everything back with --uninstall.
"""

INSTALL_EXAMPLES = """\
examples:
  sevenfold install claude-code --dry-run    show the changes, make none
  sevenfold install codex
  sevenfold install claude-code --uninstall
"""

AGENT_CHOICES = ("claude-code", "codex", "opencode", "goose", "continue", "cursor")


def add_install_options(parser: ArgumentParser) -> None:
    parser.add_argument("agent", choices=AGENT_CHOICES, metavar="AGENT", help=", ".join(AGENT_CHOICES))
    parser.add_argument("--dry-run", action="store_true", help="show the changes and make none")
    parser.add_argument("--uninstall", action="store_true", help="remove Sevenfold's entries")
    add_json_option(parser)


HOOK_HELP = "answer a hook of another agent (for configurations)"

HOOK_DESCRIPTION = """\
Reads the JSON that Claude Code or Codex hands to a hook from standard input,
and prints the answer. `sevenfold install` writes a faster form of the same
command into their configuration. Ends with 0 whatever happens: what went wrong
is in the log, ~/.sevenfold/run/resident.log.
"""

HOOK_EXAMPLES = """\
examples:
  sevenfold hook UserPromptSubmit < input.json
"""


def add_hook_options(parser: ArgumentParser) -> None:
    parser.add_argument("event", metavar="EVENT", help="SessionStart, UserPromptSubmit, PreToolUse, …")


RESIDENT_HELP = "show or stop the process that answers other agents"

RESIDENT_DESCRIPTION = """\
Hooks and the MCP server ask one background process, which keeps memories and
indexes loaded. It starts when it is needed and ends after 30 minutes without a
request.
"""

RESIDENT_EXAMPLES = """\
examples:
  sevenfold resident               is it running, and for which projects
  sevenfold resident start         start it now, so that the first hook need not wait
  sevenfold resident stop
"""


def add_resident_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=("status", "start", "stop"),
        default="status",
        help="status (if none is named), start or stop",
    )
    add_json_option(parser)


COMPLETION_HELP = "print a script that completes commands in your shell"

COMPLETION_DESCRIPTION = """\
Prints a script for bash, zsh or fish. With it, Tab completes commands, options
and their values.
"""

COMPLETION_EXAMPLES = """\
examples:
  source <(sevenfold completion bash)                      in ~/.bashrc
  sevenfold completion zsh > ~/.zfunc/_sevenfold           with ~/.zfunc in $fpath
  sevenfold completion fish > ~/.config/fish/completions/sevenfold.fish
"""

SHELL_CHOICES = ("bash", "zsh", "fish")


def add_completion_options(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELL_CHOICES, metavar="SHELL", help=", ".join(SHELL_CHOICES))
