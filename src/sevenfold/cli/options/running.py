"""Arguments of `chat`, `tour`, `simulate`, `team` and `serve`."""

from __future__ import annotations

from argparse import REMAINDER, ArgumentParser, ArgumentTypeError, BooleanOptionalAction
from pathlib import Path

from sevenfold.cli.options import (
    CommandAction,
    add_actions,
    add_json_option,
    add_no_options,
    add_project_option,
    parse_port,
)

CHAT_HELP = "talk to an agent that works in this repository"

CHAT_DESCRIPTION = """\
Starts an agent in this repository. It reads and edits files, runs commands,
and asks before it changes anything. All seven layers are on, and you see what
each does.

With -p it answers one prompt and exits, for scripts; piped input is appended
to the prompt. Without a key it says what it looked for and how to start.
"""

CHAT_EXAMPLES = """\
examples:
  sevenfold chat
  sevenfold chat --continue                            go on with the last session
  sevenfold chat --resume                              choose from a list of sessions
  sevenfold chat --resume 3f2a --fork                  go on from one, and leave it as it is
  git diff | sevenfold chat -p "Review this"
  sevenfold chat -p "Fix the typo in README" --mode accept-edits
  sevenfold chat -p "Where is the parser?" --output json | jq -r .result
"""

CHOOSE_SESSION = ""
"""What `--resume` stands for without an ID."""
CHAT_MODES = ("ask", "accept-edits", "plan", "read-only", "bypass")
CHAT_OUTPUT_FORMATS = ("text", "json", "stream-json")


def add_chat_options(parser: ArgumentParser) -> None:
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", help="what to say first")
    parser.add_argument(
        "-p", "--print", action="store_true", help="answer PROMPT, and what is piped in, and end"
    )
    parser.add_argument(
        "--output",
        choices=CHAT_OUTPUT_FORMATS,
        default="text",
        help="with -p: text, json, or stream-json as it happens",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--continue", action="store_true", help="go on with the session written to last")
    which.add_argument(
        "--resume",
        metavar="ID",
        nargs="?",
        const=CHOOSE_SESSION,
        help="continue that session; the start of its id is enough; without ID choose from a list",
    )
    parser.add_argument("--fork", action="store_true", help="go on in a copy: that session stays as it is")
    parser.add_argument(
        "--model", metavar="NAME", default="", help="use this model (default: as in settings)"
    )
    parser.add_argument("--mode", choices=CHAT_MODES, help="what needs no approval (default: as in settings)")
    parser.add_argument(
        "--max-rounds",
        type=_count,
        metavar="N",
        help="end a turn after N model calls (default: as in settings)",
    )
    parser.add_argument("--max-usd", type=_dollars, metavar="X", help="with -p: end when this much is spent")
    parser.add_argument(
        "--screen-reader",
        action="store_true",
        help="print lines and read lines: nothing is drawn twice, and menus are numbered lists",
    )
    add_project_option(parser)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ArgumentTypeError(f"{text!r} is not a number of rounds; expected 1 or more")
    return int(text)


def _dollars(text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = -1.0
    if not 0 < amount < float("inf"):
        raise ArgumentTypeError(f"{text!r} is not an amount of dollars; expected something like 0.50")
    return amount


TOUR_HELP = "watch the layers at work and what they save, in 90 seconds"

TOUR_DESCRIPTION = """\
Plays two days of the agent in a scratch repository, offline and without a key,
and explains what each layer does. The model is a script, served and billed by
the simulator. After each part of the first day you see the bill so far, beside
that of the same day with the layers off.

Space skips to the next part, q goes to the bill. Nothing of yours is read or
written: repository, home and settings are made for the tour and removed.
"""

TOUR_EXAMPLES = """\
examples:
  sevenfold tour
  sevenfold tour --fast     without the pauses for reading
"""


def add_tour_options(parser: ArgumentParser) -> None:
    parser.add_argument("--fast", action="store_true", help="do not pause for reading")


SIMULATE_HELP = "serve the Messages API on this machine and bill it"

SIMULATE_DESCRIPTION = """\
Serves the Messages API on this machine, with a prompt cache and bills as
documented: point any agent at it and see what each request would cost, and
which block broke the cache. Offline, no key.

--brain chooses what answers: echo repeats the prompt; a script.yaml lists
requests and answers, and fails if one is unexpected or missing; a
session.jsonl (of Claude Code, Codex or plain Messages JSONL) repeats the
answers of a recorded session. See docs/simulator.md.
"""

SIMULATE_EXAMPLES = """\
examples:
  sevenfold simulate
  sevenfold simulate --port 8100 --ledger bills.jsonl
  sevenfold simulate --brain talk.yaml
  sevenfold simulate --account-age old        as for accounts made before 2026-08-31
  curl -d '{"advance_seconds": 3600}' http://127.0.0.1:8100/_sevenfold/clock
"""


def add_simulate_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--port", type=parse_port, default=0, metavar="N", help="where to listen (any free port)"
    )
    parser.add_argument(
        "--brain", default="echo", metavar="BRAIN", help="echo, a script.yaml or a session.jsonl (echo)"
    )
    parser.add_argument("--ledger", metavar="FILE", help="append every request and its bill, as JSON lines")
    parser.add_argument("--quiet", action="store_true", help="do not print a line per request")
    parser.add_argument(
        "--strict", action=BooleanOptionalAction, default=True, help="refuse fields the API does not know"
    )
    parser.add_argument(
        "--account-age", choices=("new", "old"), default="new", help="old: thinking is checked on few models"
    )
    parser.add_argument(
        "--keep-signatures", action="store_true", help="accept thinking that was signed elsewhere"
    )
    parser.add_argument(
        "--cache-edits", action="store_true", help="allow an extension that no public provider offers"
    )


MCP_HELP = "serve memory, past sessions and spend to agents over MCP"

MCP_DESCRIPTION = """\
An MCP server for any agent: tools recall, remember, search_sessions, read_result
and spend, and the memories of a project as resources. Agents start it
themselves and talk to it on its standard input and output. What an agent wants
remembered waits for `sevenfold memory review`, unless the user said it.

With --http it listens on this machine instead and prints the address, which
holds a secret token and stays the same with the same --port. docs/mcp.md has
the configuration for common agents.
"""

MCP_EXAMPLES = """\
examples:
  sevenfold mcp
  sevenfold mcp --project ~/src/app
  sevenfold mcp --http --port 8071
  claude mcp add sevenfold -- sevenfold mcp
"""


def add_mcp_options(parser: ArgumentParser) -> None:
    add_project_option(parser)
    parser.add_argument("--http", action="store_true", help="listen on this machine, over streamable HTTP")
    parser.add_argument(
        "--port", type=parse_port, default=0, metavar="N", help="with --http: where to listen (any free port)"
    )


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
    parser.add_argument(
        "--org", default="", metavar="NAME", help="which organisation may approve this device, by name or id"
    )
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
        name="join",
        help="join a repository on a server",
        more="Joins this project to a repository on a server. The token is pasted, read\n"
        "from standard input, or obtained with a code; only you can read it, in\n"
        "Sevenfold's home, and never in the repository. Ends with a first exchange.",
        add=_join,
    ),
    CommandAction(
        name="status",
        help="joined what, and what waits (the default)",
        more="Asks no server.",
        add=add_no_options,
    ),
    CommandAction(
        name="pull",
        help="take what is new there",
        more="Takes what is new on the server; sends nothing.",
        add=add_no_options,
    ),
    CommandAction(
        name="push",
        help="send what is new here",
        more="Sends what is new here, having taken what is new there.",
        add=add_no_options,
    ),
    CommandAction(
        name="conflicts",
        help="memories that two people changed",
        more="Both texts of each, as a difference.",
        add=add_no_options,
    ),
    CommandAction(
        name="resolve",
        help="settle a conflict, for all",
        more="Keeps one of the two texts, or a third, under the memory's name, and deletes\n"
        "the copy for everybody.",
        add=_resolve,
    ),
    CommandAction(
        name="delete",
        help="delete a memory for everybody",
        more="Deletes a shared memory here, and for everybody at the next exchange. A\n"
        "change that somebody makes at the same time survives, and you are told.",
        add=_delete,
    ),
    CommandAction(
        name="allow",
        help="let a finding pass that is no secret",
        more="Says that something which looks like a secret may be shared, with a reason.\n"
        "The server has its own list: an admin allows it there.",
        add=_allow,
    ),
    CommandAction(
        name="leave",
        help="leave the server; files stay",
        more="Forgets the server. The files stay as they are.",
        add=_leave,
    ),
)
"""In the order in which `--help` lists them."""


SERVE_HELP = "run a server that keeps one memory for a team"

SERVE_DESCRIPTION = """\
Keeps one memory for a team: organisations, members, tokens and repositories, on
SQLite (the default: a file in Sevenfold's home) or PostgreSQL. Without an action
it serves until SIGTERM or Ctrl-C, and finishes what is under way.

actions, on the machine that has the database:
  init ORG OWNER                  the first organisation, its owner and a token
  org add NAME · list
  member add ORG NAME --role ROLE · list ORG · role ORG NAME --role ROLE · remove ORG NAME
  token add ORG MEMBER --scope SCOPE --days N · list ORG · revoke ORG ID
  repo claim ORG NAME --remote URL · list ORG
  device approve ORG CODE MEMBER
  allow ORG FINGERPRINT --reason TEXT
  audit ORG --limit N
  backup FILE · restore FILE
"""

SERVE_EXAMPLES = """\
examples:
  sevenfold serve init acme ada
  sevenfold serve --port 8070
  sevenfold serve --db postgresql://sevenfold@db.internal/team --host 0.0.0.0
  sevenfold serve member add acme bob --role writer
  sevenfold serve token add acme bob --scope memory:read --scope memory:write --days 90
  sevenfold serve repo claim acme acme/app --remote git@github.com:acme/app.git
  sevenfold serve backup team.backup
"""

SERVE_ACTIONS = (
    "run",
    "init",
    "org",
    "member",
    "token",
    "repo",
    "device",
    "allow",
    "audit",
    "backup",
    "restore",
)


def add_serve_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action", nargs="?", choices=SERVE_ACTIONS, default="run", metavar="ACTION", help="see above (run)"
    )
    parser.add_argument("words", nargs="*", metavar="WORD", help="what the action is about")
    parser.add_argument("--db", metavar="URL", help="sqlite:///FILE or postgresql://… (a file in our home)")
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="where to listen (127.0.0.1)")
    parser.add_argument("--port", type=parse_port, default=8070, metavar="N", help="where to listen (8070)")
    parser.add_argument("--forge", metavar="HOST", help="ask this forge for proof of repositories (none)")
    parser.add_argument("--rate", type=int, metavar="N", help="requests a second of an organisation (100)")
    parser.add_argument("--max-entries", type=int, metavar="N", help="memories of a repository (500)")
    parser.add_argument("--quiet", action="store_true", help="do not log a line per request")
    parser.add_argument(
        "--role", default="writer", metavar="ROLE", help="owner, admin, writer or reader (writer)"
    )
    parser.add_argument(
        "--scope", action="append", metavar="SCOPE", help="memory:read, memory:write or admin; repeatable"
    )
    parser.add_argument("--days", type=int, default=90, metavar="N", help="how long a token lasts (90)")
    parser.add_argument("--remote", default="", metavar="URL", help="of a repository: a hint for clients")
    parser.add_argument("--reason", default="", metavar="TEXT", help="why a finding is allowed")
    parser.add_argument("--limit", type=int, default=100, metavar="N", help="lines of the audit (100)")
    add_json_option(parser)


PROXY_HELP = "forward the requests of any agent, and keep the bill"

PROXY_DESCRIPTION = """\
Listens on this machine and forwards Messages, Chat Completions and Responses
requests. It records what each costs, what was read from the cache, and why the
cache missed. With --agent it also prints an address whose requests pass the layers;
all others are forwarded unchanged. Keys go upstream and are never written down.
"""

PROXY_EXAMPLES = """\
examples:
  sevenfold proxy                                      then ANTHROPIC_BASE_URL=http://127.0.0.1:…
  sevenfold proxy --port 8377 --upstream http://127.0.0.1:8080
  sevenfold proxy --agent pi                           an address for pi in this folder
  sevenfold proxy --list
"""

RUN_HELP = "start an agent behind the proxy, and end with its bill"

RUN_DESCRIPTION = """\
Starts an agent that you have and sends its requests through a proxy: large tool
results are stored, memories are added, and the cost of the session is printed
when it ends. With --record-only no request is changed. The configuration of the
agent is not changed. Arguments after AGENT go to the agent.
"""

RUN_EXAMPLES = """\
examples:
  sevenfold run claude
  sevenfold run claude -p "Explain this repository"
  sevenfold run codex exec "Fix the failing test"
"""


def add_proxy_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--port", type=parse_port, default=0, metavar="N", help="listen there (any free port)"
    )
    parser.add_argument(
        "--bind",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="listen on this address; off loopback a token is asked for (127.0.0.1)",
    )
    _add_upstream(parser)
    parser.add_argument("--agent", metavar="NAME", help="print an address for this agent, with its layers")
    parser.add_argument("--project", metavar="DIR", help="the folder that agent works in (here)")
    _add_record_only(parser)
    parser.add_argument("--list", action="store_true", help="list the sessions that went through a proxy")
    parser.add_argument("--quiet", action="store_true", help="show no line for each request")
    add_json_option(parser)


def add_run_options(parser: ArgumentParser) -> None:
    _add_upstream(parser)
    _add_record_only(parser)
    parser.add_argument("agent", metavar="AGENT", help="claude, codex, opencode, goose, qwen, aider …")
    parser.add_argument("arguments", nargs=REMAINDER, metavar="…", help="arguments of the agent")


def _add_record_only(parser: ArgumentParser) -> None:
    parser.add_argument("--record-only", action="store_true", help="keep the bill, change no request")


def _add_upstream(parser: ArgumentParser) -> None:
    parser.add_argument("--upstream", metavar="URL", help="forward to this server (the provider's own)")
