"""How `sevenfold serve` is asked for."""

from __future__ import annotations

from argparse import ArgumentParser

from sevenfold.cli.options.shared import add_json_option, parse_port

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
    parser.add_argument("--quiet", action="store_true", help="do not log a line a request")
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
