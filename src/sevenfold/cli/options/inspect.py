"""Arguments of `context`, `stats`, `spend`, `doctor`, `settings`, `layers`, `replay`, `search` and `ui`."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError

from sevenfold.cli.options import add_json_option, add_project_option, parse_port

CONTEXT_HELP = "show what fills a session's window, and the next compaction"

CONTEXT_DESCRIPTION = """\
Shows what fills the window of a session: tokens by kind and tool, files that
were read twice, where the warning and compaction begin, what the next
compaction would do and keep, and what the session cost so far.

Reads the transcript of the session and writes nothing, so you can run it while
the session runs. The system prompt and the tools are not in the transcript;
their size is what was billed beyond the rest.
"""

CONTEXT_EXAMPLES = """\
examples:
  sevenfold context
  sevenfold context 3f2a --project ~/src/app       by the beginning of its id
  sevenfold context --model claude-haiku-4-5       would it fit there?
  sevenfold context --json | jq .next_cut
"""


def add_context_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "session",
        nargs="?",
        default="latest",
        metavar="SESSION",
        help="its id, or the start of it (default: the one written to last)",
    )
    add_project_option(parser)
    parser.add_argument("--model", metavar="NAME", help="as if it continued with this model (its last one)")
    add_json_option(parser)


STATS_HELP = "show what your sessions cost over time, and what the layers did"

STATS_DESCRIPTION = """\
Adds up a project's sessions by day: rounds, tokens, the share that was read
from the cache, dollars with and without caching and by kind of call; how often
the view was cut and by which layer; what failed, was denied or refused. Reads
transcripts and events, and writes nothing.
"""

STATS_EXAMPLES = """\
examples:
  sevenfold stats
  sevenfold stats --since 2026-11-01 --json | jq .days
  sevenfold stats --sessions                  one line per session instead of per day
  sevenfold stats --fidelity                  how much of what was used after each cut was still there
"""


def add_stats_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--since", metavar="DATE", help="count only sessions written to since this day (30 days)"
    )
    parser.add_argument("--sessions", action="store_true", help="one line per session instead of per day")
    parser.add_argument(
        "--fidelity", action="store_true", help="measure each cut; takes some seconds per long session"
    )
    add_json_option(parser)
    add_project_option(parser)


SPEND_HELP = "show what background work spent; stop or resume it"

SPEND_DESCRIPTION = """\
Shows what background work spent against its caps, by kind, and which kinds are
paused after failures: notes, summaries, progress lines, agents in the
background. All your processes share the caps. The conversation itself is not
counted here and never stopped; `sevenfold stats` shows it.
"""

SPEND_EXAMPLES = """\
examples:
  sevenfold spend
  sevenfold spend stop             no background work in any process from now on
  sevenfold spend resume
  sevenfold spend forgive notes    forget the failures of a kind, so that it tries again
  sevenfold spend --json | jq .hour
"""


def add_spend_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=("show", "stop", "resume", "forgive"),
        default="show",
        help="show (if none is named), stop, resume, or forgive a KIND",
    )
    parser.add_argument("kind", nargs="?", metavar="KIND", help="what to forgive: notes, summary, …")
    add_json_option(parser)


DOCTOR_HELP = "check the installation, and say what to do about each finding"

DOCTOR_DESCRIPTION = """\
Checks what Sevenfold needs: the interpreter and its libraries, keys, settings,
where files are kept and whether they can be written, disk space, locks,
transcripts, mail, the sandbox, spending, and recent errors. Says what to do
about each finding. Offline; it changes nothing and shows no secret. Exits with
1 if something is broken.
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


SETTINGS_HELP = "show each setting, its value and its source"

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
agree to it: when `sevenfold chat` asks, or with --trust. An answer holds until the file changes. Hooks, MCP
servers and agents of a repository are agreed to by naming their file; `sevenfold doctor` lists them.
"""

SETTINGS_EXAMPLES = """\
examples:
  sevenfold settings
  sevenfold settings window compact.auto_compact_pct
  sevenfold settings --project ~/src/app --json
  sevenfold settings --trust
  sevenfold settings --refuse .mcp.json
"""


def add_settings_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "keys",
        nargs="*",
        metavar="KEY",
        help="a section, or section.name; all if none; a file, with --trust or --refuse",
    )
    answer = parser.add_mutually_exclusive_group()
    answer.add_argument(
        "--trust",
        action="store_true",
        help="agree to the settings that the repository brings, or to the files that KEY names",
    )
    answer.add_argument("--refuse", action="store_true", help="refuse them, and do not be asked again")
    add_json_option(parser)
    add_project_option(parser)


LAYERS_HELP = "show the seven layers"

LAYERS_DESCRIPTION = """\
Shows the seven layers, cheapest first.
"""

LAYERS_EXAMPLES = """\
examples:
  sevenfold layers
  sevenfold layers --json | jq .
"""


def add_layers_options(parser: ArgumentParser) -> None:
    add_json_option(parser)


REPLAY_HELP = "show what recorded sessions cost, and where the cache broke"

REPLAY_DESCRIPTION = """\
Shows what recorded sessions cost and what to do about it: tokens and dollars
by kind and model, every cache break with its cause, what filled the context,
the most expensive tool results. Offline, no key.

Reads transcripts of Claude Code, Codex and Sevenfold, and plain Messages JSONL,
whatever the files are called. Without a path it looks where these agents keep
theirs; if nothing is there, it shows a sample.
"""

REPLAY_EXAMPLES = """\
examples:
  sevenfold replay
  sevenfold replay ~/.claude/projects --since 2026-11-01
  sevenfold replay session.jsonl --json | jq .breaks
  sevenfold replay --open                        a page, in the browser
  sevenfold replay --by project                  or day, week, model, session
  sevenfold replay --reprice claude-sonnet-5-5   all of them at its prices
  sevenfold replay --policy sevenfold            what we would have saved
  sevenfold replay --proxy --watch               what runs behind a proxy now
"""


def add_replay_options(parser: ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", metavar="PATH", help="a transcript, or a folder that holds some")
    parser.add_argument("--json", action="store_true", help="print JSON (docs/replay.md describes it)")
    parser.add_argument(
        "--html",
        nargs="?",
        const="",
        metavar="FILE",
        help="write the report as one page, to open in a browser (replay.html in Sevenfold's home)",
    )
    parser.add_argument("--open", action="store_true", help="open the page in the browser; implies --html")
    parser.add_argument(
        "--svg", metavar="FILE", help="write a picture to share: spent, lost, would have saved"
    )
    parser.add_argument(
        "--by",
        choices=("session", "day", "week", "project", "model"),
        help="list what each of these cost, instead of the report",
    )
    parser.add_argument("--csv", action="store_true", help="print that list as CSV (by session unless --by)")
    parser.add_argument(
        "--anonymous", action="store_true", help="leave out paths, names, commands and prompts"
    )
    parser.add_argument("--watch", action="store_true", help="do it again whenever a session grows")
    parser.add_argument(
        "--proxy",
        action="store_true",
        help="show what went through a proxy instead: all sessions, and each request of those that run; "
        "PATH: the name of a ledger",
    )
    parser.add_argument("--reprice", metavar="MODEL", help="count every call at this model's prices of today")
    parser.add_argument("--since", metavar="DATE", help="count only calls from this day on")
    parser.add_argument("--limit", type=int, metavar="N", help="read only the N files written to last")
    parser.add_argument("--jobs", type=int, metavar="N", help="processes to use (one a core)")
    under = parser.add_argument_group("what it would have cost under a policy")
    under.add_argument(
        "--policy",
        choices=("sevenfold", "balanced", "thrift", "ski", "fixed", "keep"),
        help="send the sessions again under this policy for clearing old results; sevenfold: our default",
    )
    under.add_argument("--ttl", choices=("5m", "1h"), help="how long the cache lives (5m)")
    under.add_argument(
        "--read-price",
        type=float,
        metavar="X",
        help="what a cached token costs, a fresh one being 1 (as the session's model has it, else 0.1)",
    )


SEARCH_HELP = "find turns in all past sessions on this machine"

SEARCH_DESCRIPTION = """\
Looks for words in everything that was said in past sessions: yours with Sevenfold,
Claude Code and Codex, in every project. Turns with all words come first, then those
with some of them. Put words in quotes to find them side by side.

The first run builds an index below your home; later runs read what is new. The
index stays on this machine, and a snippet that seems to hold a secret is not shown.
Exits with 1 if nothing is found. For memories, see `sevenfold recall`.
"""

SEARCH_EXAMPLES = """\
examples:
  sevenfold search retry timeout
  sevenfold search '"connection refused"' --project .     only sessions in this folder
  sevenfold search migration --project acme --since 2026-10-01
  sevenfold search flaky test --json | jq -r '.[0].resume'
"""


def add_search_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "query", nargs="+", metavar="WORD", help='what to look for; "several words" in quotes'
    )
    parser.add_argument(
        "--project", metavar="DIR", help="only sessions in this folder, or with this in their path"
    )
    parser.add_argument("--since", metavar="DATE", help="only turns since this day")
    parser.add_argument("--limit", type=_read_hit_limit, default=10, metavar="N", help="show the N best (10)")
    add_json_option(parser)


def _read_hit_limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 1_000):
        raise ArgumentTypeError(f"{text!r} is not a number of turns; expected 1 to 1000")
    return int(text)


UI_HELP = "show sessions, memories and spend on a local page"

UI_DESCRIPTION = """\
Serves a page on this machine and opens it in your browser: what your sessions cost and
what each request held, memories with their history and review, what a prompt would
recall, rules, dreams, spend with its kill switch, the team, and what runs now.

Only the browser that opens the printed link can use it: the page listens on 127.0.0.1,
and the link works once. It loads nothing from the network. Every change that you make
there is the same as with the commands, and `sevenfold memory undo` takes it back.
Needs the extra `ui`; where it is missing, the command says how to install it.
"""

UI_EXAMPLES = """\
examples:
  sevenfold ui                       the page of this project, in your browser
  sevenfold ui --project ~/src/app   of another project
  sevenfold ui --no-open             only print the link, such as over ssh -L 7007:127.0.0.1:7007
  sevenfold ui --port 8123           on a port of your choice; 0 is any free one
"""


def add_ui_options(parser: ArgumentParser) -> None:
    add_project_option(parser)
    parser.add_argument(
        "--port", type=parse_port, metavar="N", help="listen there (7007, or any free port if it is taken)"
    )
    parser.add_argument("--no-open", action="store_true", help="print the link and open no browser")
