"""The commands in a shell command line.

For code that looks at commands; it permits none. It errs on the side of finding too much: a command that is
looked at in vain costs a line, and a command that is missed costs what it does. Variables, aliases and
scripts are not evaluated.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence, Set
from itertools import islice, pairwise

from sevenfold.core.text.globs import matches_name
from sevenfold.core.text.shell_parser import (
    SimpleCommand,
    find_arrays,
    find_printed_texts,
    parse_commands,
)

_MAX_CHARS = 100_000
_MAX_DEPTH = 3
"""Command lines inside words of command lines: `sudo bash -c "ssh host 'git push'"`."""
MAX_COMMAND_STARTS = 40
"""Words among which the command that is meant begins, and commands that run one another."""
MAX_REMOTE_READINGS = 8
"""Readings of `ssh` and its like: each is read as a line of its own."""

_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
_OPTION = re.compile(r"\A(?:-[A-Za-z]|--[a-z-]+=)(?=\S)")
_KEYWORDS = frozenset(["then", "do", "else", "elif", "if", "while", "until", "!", "{", "coproc"])
_WRAPPERS = {
    **dict.fromkeys(("sudo", "doas", "env", "nice", "nohup", "exec", "command", "builtin", "eval"), 0),
    **dict.fromkeys(("xargs", "stdbuf", "setsid", "ionice", "strace", "ltrace", "watch", "nsenter"), 0),
    **dict.fromkeys(("unshare", "busybox", "parallel", "npx", "bunx", "uvx", "caffeinate", "chronic"), 0),
    **dict.fromkeys(("time", "runuser", "systemd-run", "run0", "pkexec", "setpriv", "prlimit", "numactl"), 0),
    **dict.fromkeys(("fakeroot", "firejail", "unbuffer", "xvfb-run", "dbus-run-session", "wsl", "entr"), 0),
    **dict.fromkeys(("timeout", "flock", "chroot", "taskset", "chrt", "function", "script", "cmd"), 1),
    **dict.fromkeys(("retry", "dotenv", "tini", "dumb-init", "torsocks", "proxychains4", "cpulimit"), 0),
    **dict.fromkeys(("systemd-inhibit", "tsocks", "daemonize", "start-stop-daemon", "sshpass", "chpst"), 0),
    **dict.fromkeys(("with-contenv", "watchexec", "screen", "nodemon", "hyperfine", "concurrently"), 0),
    "spawn": 0,  # of expect
    **dict.fromkeys(("gosu", "su-exec", "s6-setuidgid", "envdir", "envchain"), 1),
}
"""What runs the command behind it, and how many words of its own stand between, options not counted."""
_RUNNING = {
    **dict.fromkeys(("uv", "poetry", "pipenv", "pdm", "hatch", "rye", "pixi", "pipx", "volta"), ("run", 0)),
    **dict.fromkeys(("conda", "mamba", "micromamba", "coverage", "devbox", "op", "doppler"), ("run", 0)),
    **dict.fromkeys(
        ("bundle", "asdf", "rbenv", "pyenv", "nodenv", "fnm", "npm", "pnpm", "yarn"), ("exec", 0)
    ),
    **dict.fromkeys(("mise", "rtx"), ("exec", 0)),
    **dict.fromkeys(("direnv", "nvm", "aws-vault", "chamber"), ("exec", 1)),
    "bun": ("x", 0),
    "flox": ("activate", 0),
}
"""The same for programs of which one subcommand does it: its name, and how many words follow it."""
_SHORT_RUNNING = {"npm": "x", "mise": "x", "rtx": "x", "pnpm": "dlx", "yarn": "dlx"}
_COMMAND_MARKS = {
    **dict.fromkeys((*_RUNNING, "runuser"), frozenset(["--"])),
    "nix": frozenset(["-c", "--command"]),
}
"""Words of a program behind which a command begins."""
_REMOTE = {"ssh": 1, "mosh": 1}
_ELSEWHERE = {
    **_REMOTE,
    **dict.fromkeys(("docker", "docker-compose", "podman", "nerdctl", "kubectl", "oc", "lxc"), 2),
}
"""The same, where the command runs somewhere else: of the host, or of `exec` and the container."""
_STDIN_SHELLS = frozenset(["bash", "sh", "zsh", "dash", "ash", "fish", "ksh"])
_SHELLS = frozenset(
    [
        *_STDIN_SHELLS,
        *("eval", "su", "trap", "env", "flock", "watch", "script", "parallel", *_REMOTE),
        *("new-session", "new-window", "split-window", "send-keys"),  # of tmux
    ]
)
"""What takes a command line as one of its words, or is fed with one."""
_LINE_TAKERS = frozenset(
    [
        *("hyperfine", "concurrently", "watchexec", "entr", "nodemon", "screen", "pwsh", "powershell", "cmd"),
        *("tmux new", "tmux neww", "tmux splitw", "git submodule foreach"),
    ]
)
"""The same as the program alone, or with its verb."""
_GIT_RUNNING = frozenset([("submodule", "foreach"), ("bisect", "run")])
"""What git runs a command with."""
_TAKES_OPERANDS = re.compile(
    r":|ag|alias|apropos|awk|cargo|cat|cd|chmod|chown|code|cp|declare|diff|echo|egrep|export|false|find|gh|git|glab|go"
    r"|grep|head|help|hg|jq|less|ln|logger|ls|make|man|mkdir|mv|notify-send|npm|printf|pytest|read|rg|rm|rmdir|say"
    r"|sed|set|sort|svn|tail|tar|tee|test|tldr|touch|true|type|vim|wc|whereis|which|zip|\[\[?"
)
"""Programs behind whose `--` stand files or words. Behind that of others a command may."""
_FED = frozenset(["source", ".", "at", "batch"])
"""The same as the program alone, as these words have other uses."""
_LINE_OPTIONS = {
    **dict.fromkeys(("npx", "npm"), frozenset(["-c", "--call"])),
    "nix-shell": frozenset(["--run", "--command"]),
    "git": frozenset(["-x", "--exec"]),
    **dict.fromkeys(("nodemon", "watchexec"), frozenset(["--exec", "-x"])),
    **dict.fromkeys(("runuser", "sg", "vagrant", "gcloud", "mise", "rtx"), frozenset(["-c", "--command"])),
}
"""Options of a program that take a command line."""
_ANY_LINE_OPTIONS = frozenset(["--command", "--exec", "--cmd"])
"""Of every program."""
_RUN_VERBS = frozenset(["run", "exec"])
"""Behind which programs that are not known may take one too."""
_KNOWN = frozenset(
    [
        *_WRAPPERS,
        *_RUNNING,
        *_ELSEWHERE,
        *_COMMAND_MARKS,
        *_LINE_OPTIONS,
        *_SHELLS,
        "tmux",
        "for",
        "select",
    ]
)
"""Programs of which is known what they run."""
_LABELS = {"tmux": r"-[A-Za-z]*[sntcFxyef]", "screen": r"-[A-Za-z]*[StperxRT]"}
"""Options whose value is a name, a folder or a size."""
_TIMES = re.compile(r"^[^\S\n]*(?:@\w+|(?:[\w*/,-]+[^\S\n]+){5})", re.MULTILINE)
_SHELL_VALUES = frozenset(["-o", "+o", "-O", "+O", "--rcfile", "--init-file"])
_MODULE_RUNNERS = re.compile(r"(?:python|pypy)[\d.]*|py")
_FINDERS = frozenset(["find", "fd", "fdfind"])
_EXECUTING = frozenset(["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"])
_VALUED = {
    "git": frozenset(
        ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--attr-source"]
    ),
    "make": frozenset(["-C", "-f", "-I", "-o", "-W", "--directory", "--file", "--makefile"]),
}
"""Programs whose options are known: those that take the next word, before the word that says what to do."""


_SAME_AS = {"gmake": "make", "bmake": "make", "hub": "git"}
_SCRIPTED = frozenset(["npm", "pnpm", "yarn", "bun"])
_RUN_SCRIPT = frozenset(["run", "run-script"])
_LIFECYCLE = frozenset(["test", "start", "stop", "restart"])  # which `npm` runs by name alone too
_SCRIPT_VERBS = frozenset([*_RUN_SCRIPT, *_LIFECYCLE, "t", "tst"])
_OWN_VERBS = frozenset(
    ["i", "install", "ci", "add", "remove", "rm", "up", "update", "dlx", "publish", "link"]
)
"""What `pnpm` and `yarn` do themselves, even if a script has that name."""
END_OF_COMMAND = "|"
_LOOKUP = r"(?:which|command -v|type -p)\s+([\w./-]+)\s*"
_LOOKED_UP = re.compile(rf"\$\({_LOOKUP}\)|`{_LOOKUP}`")
"""A program by where it is: `$(which git) push`."""
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)(?:\[[@*]\])?\}?")
_DECLARING = (["export"], ["declare"], ["local"], ["readonly"], ["typeset"])
_MAX_VALUE_WORDS = 20
"""Of a variable: a list of commands is no spelling of one."""


def split_commands(line: str, depth: int = _MAX_DEPTH) -> tuple[tuple[str, ...], ...]:
    """The words of each command, bare: no quotes, assignments or redirections, and programs without their
    folder. What `sudo` and its like run follows as a command of its own.

    With a depth of 1 nothing is looked for inside of words, or in what runs on another machine.
    """
    found: list[tuple[str, ...]] = []
    parsed = parse_commands(_LOOKED_UP.sub(r"\1\2", line[:_MAX_CHARS]))
    values: dict[str, list[str]] = {}
    elements = _take_arrays(parsed, values)
    for at, simple in enumerate(parsed):
        commands = [] if at in elements else [*_readings(simple.words)]
        if (spelled := _with_values(simple.words, values)) != simple.words:
            commands += _readings(spelled)
        found += commands
        if depth > 1:
            for inner in (*_inner_lines(simple, commands), *_printed_lines(parsed, at, commands)):
                found += split_commands(inner, depth - 1)
    return tuple(found)


def _take_arrays(parsed: list[SimpleCommand], values: dict[str, list[str]]) -> set[int]:
    """Note what the arrays of a line hold; the commands that are elements, where nothing may run them."""
    elements = set[int]()
    for array in islice(find_arrays(parsed), MAX_COMMAND_STARTS):
        before = values.get(array.name, []) if array.is_longer else []
        values[array.name] = [*before, *array.words][:_MAX_VALUE_WORDS]
        used = re.compile(rf"\$\{{?{array.name}\b")
        users = (one.words for one in parsed if one.words[:1] not in (["echo"], ["printf"]))
        if not any(used.search(word) for words in users for word in words):
            elements.update(range(array.first, array.last + 1))
    return elements


def _list_spellings(command: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """A command as it stands, and what it is called otherwise: `npm t` and `npm run test` are `npm test`."""
    program, *rest = command or ("",)
    yield (program, *rest)
    if program in _SAME_AS:
        yield (_SAME_AS[program], *rest)
    verbs = (at for at, word in enumerate(rest) if word in _SCRIPT_VERBS)
    at = next(verbs, -1) if program in _SCRIPTED else -1
    if at < 0 or any("-" not in (last[:1], word[:1]) for last, word in pairwise(command[: at + 1])):
        return
    head, word, behind = (program, *rest[:at]), rest[at], rest[at + 1 :]
    by_name = program in ("pnpm", "yarn") and _OWN_VERBS.isdisjoint(behind[:1])
    if word in _RUN_SCRIPT and behind and (by_name or behind[0] in _LIFECYCLE):
        yield (*head, *behind)
    elif word not in _RUN_SCRIPT:
        name = "test" if word in ("t", "tst") else word
        yield from ((*head, name, *behind), (*head, "run", name, *behind))


def _with_values(words: list[str], values: dict[str, list[str]]) -> list[str]:
    """The words with what variables of the same line stand for: `GIT=git; $GIT push`."""
    assigned = words[1:] if words[:1] in _DECLARING else words
    if assigned and all(_ASSIGNED.match(word) for word in assigned):
        for name, _, value in (word.partition("=") for word in assigned):
            if value or name not in values:
                values[name] = value.split()[:_MAX_VALUE_WORDS]
    if not values:
        return words
    named = (_VARIABLE.fullmatch(word) for word in words)
    return [
        one
        for word, match in zip(words, named, strict=True)
        for one in (values.get(match[1], [word]) if match else [word])
    ]


def has_command(commands: Sequence[Sequence[str]], wanted: Sequence[str]) -> bool:
    """Whether one of the commands begins with these words; `*` in a word stands for any letters. Options may
    stand between them, with a value each: `git -C there push` is `git push`. `|` is the end: behind it stand
    options at most."""
    spelled = (spelling for command in commands for spelling in _list_spellings(command))
    if wanted[-1:] == [END_OF_COMMAND]:
        return any(_begins(one, wanted[:-1]) and not any(map(_is_operand, one[1:])) for one in spelled)
    return bool(wanted) and any(
        _begins(command, wanted) or _passes_on(command, wanted) for command in spelled
    )


def _passes_on(command: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether a program that is not known is given these words as they are: it may run them."""
    size = len(wanted)
    if size < 2 or command[0] in _KNOWN or _TAKES_OPERANDS.fullmatch(command[0]):
        return False
    for at in range(1, min(len(command), MAX_COMMAND_STARTS) - size + 1):
        if _TAKES_OPERANDS.fullmatch(command[at - 1]):
            return False
        if all(map(matches_name, wanted, command[at : at + size])):
            return True
    return False


def _is_operand(word: str) -> bool:
    return not word.startswith("-")


def _readings(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """A simple command, and those that it runs in turn: each that it could be, for only the program knows
    which of its options take the next word."""
    seen, left = set[int](), [0]
    while left and len(seen) < MAX_COMMAND_STARTS:
        at = left.pop()
        while at < len(words) and (words[at] in _KEYWORDS or _ASSIGNED.match(words[at])):
            at += 1
        if at >= len(words) or at in seen:
            continue
        seen.add(at)
        program = _program(words[at])
        yield (program, *words[at + 1 :])
        left += _find_starts(words, at, program)
        if program in _FINDERS and "-delete" in words[at:]:
            yield ("rm",)
        if _MODULE_RUNNERS.fullmatch(program):
            yield from _modules(words[at + 1 : at + MAX_COMMAND_STARTS])
        if program == "nix" and "run" in words[at:]:
            yield from _packages(words[words.index("run", at) + 1 :])


def _find_starts(words: Sequence[str], at: int, program: str) -> Iterator[int]:
    """Where the commands begin that the program at `at` runs."""
    if program in _WRAPPERS:
        yield from _starts(words, at + 1, _WRAPPERS[program])
    behind = range(at + 2, min(len(words), at + MAX_COMMAND_STARTS))
    marks = _EXECUTING if program in _FINDERS else _COMMAND_MARKS.get(program, frozenset())
    if program in _RUNNING:
        name, operands = _RUNNING[program]
        names = (name, _SHORT_RUNNING.get(program, name))
        said = next((here for here in range(at + 1, behind.stop) if words[here] in names), None)
        if said is None:
            return
        yield from _starts(words, said + 1, operands)
    if not _TAKES_OPERANDS.fullmatch(program):
        marks |= {"--"}
    yield from (start for start in behind if words[start - 1] in marks)
    if program == "git":
        run = (at + 2 for at in behind if (words[at - 1], words[at]) in _GIT_RUNNING)
        yield from (start for here in run for start in _starts(words, here - 1, 0))


def _packages(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """What `nix run` runs: a package by its name, which its program has too as a rule."""
    package = next((word for word in words[:MAX_COMMAND_STARTS] if "#" in word), "")
    if package and "--" in words:
        yield (re.split(r"[#.]", package)[-1], *words[words.index("--") + 1 :])


def _modules(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """What `python -m` runs, which has a command of that name as a rule."""
    for at, word in enumerate(words):
        if word == "-m" or not word.startswith("-"):
            is_module = word == "-m" and at + 1 < len(words)
            if is_module:
                yield tuple(words[at + 1 :])
            if is_module or at == 0 or words[at - 1] not in ("-W", "-X"):
                return
        elif word.startswith("-m"):
            yield (word[2:], *words[at + 1 :])
            return


def _starts(words: Sequence[str], at: int, operands: int) -> set[int]:
    """Where the command behind a wrapper may begin: after its options, any of which may have a value, and
    after so many words of its own."""
    found, seen = set[int](), set[tuple[int, int, bool]]()
    left = [(at, operands, False)]
    while left:
        state = left.pop()
        here, missing, is_value = state
        if here >= min(len(words), at + MAX_COMMAND_STARTS) or state in seen:
            continue
        seen.add(state)
        is_option = words[here].startswith("-")
        if is_option or _ASSIGNED.match(words[here]) or words[here] == "compose":
            left.append((here + 1, missing, is_option))
            continue
        if is_value:
            left.append((here + 1, missing, False))
        if missing:
            left.append((here + 1, missing - 1, False))
        else:
            found.add(here)
    return found


def _inner_lines(simple: SimpleCommand, commands: Sequence[Sequence[str]]) -> Iterator[str]:
    """Command lines that a command holds in its words, is fed with, or hands to another machine."""
    yield from simple.substituted
    programs = {*(word.rpartition("/")[2] for word in simple.words), *(command[0] for command in commands)}
    words = [word for last, word in pairwise(("", *simple.words)) if not _is_label(programs, last)]
    if not _SHELLS.isdisjoint(programs):
        yield from (_OPTION.sub("", word, count=1) for word in words if " " in word or "\n" in word)
        yield from simple.heredocs
    elif any(" ".join(command[:size]) in _LINE_TAKERS for command in commands for size in (1, 2, 3)):
        yield from (word.replace("\\n", "\n") for word in words if " " in word)
    elif "expect" in programs:
        yield from (script for script in (*words, *simple.heredocs) if "spawn" in script)
    elif "crontab" in programs:
        yield from map(_strip_times, simple.heredocs)
    elif any(command[0] in _FED for command in commands) or simple.words[:1] == ["$"]:
        yield from (*simple.words, *simple.heredocs)
    for command in commands:
        yield from _option_lines(command)
        if command[0] in _ELSEWHERE:
            starts = sorted(_starts(command, 1, _ELSEWHERE[command[0]]))[:MAX_REMOTE_READINGS]
            join = " ".join if command[0] in _REMOTE else shlex.join
            yield from (join(command[start : start + MAX_COMMAND_STARTS]) for start in starts)


def _is_label(programs: Set[str], option: str) -> bool:
    """Whether a name or the like follows this option, and no command line."""
    labels = (pattern for program, pattern in _LABELS.items() if program in programs)
    return any(re.fullmatch(pattern, option) for pattern in labels)


def _strip_times(table: str) -> str:
    """The command lines of a crontab."""
    return _TIMES.sub("", table)


def _option_lines(command: Sequence[str]) -> Iterator[str]:
    options = _LINE_OPTIONS.get(command[0], frozenset()) | _ANY_LINE_OPTIONS
    if not _TAKES_OPERANDS.fullmatch(command[0]):
        options |= _RUN_VERBS
    for at, word in enumerate(command[1:MAX_COMMAND_STARTS], 1):
        option, equals, line = word.partition("=")
        if option in options:
            yield line if equals else " ".join(command[at + 1 : at + 2])


def _printed_lines(
    parsed: Sequence[SimpleCommand], at: int, commands: Sequence[Sequence[str]]
) -> Iterator[str]:
    """What `echo` and `printf` write into a shell: `echo git push | sh`, `eval $(echo git push)`."""
    if any(map(_reads_stdin, commands)):
        lines = _print_all([*_feeding(parsed, at)])
        yield from map(_strip_times, lines) if any(one[0] == "crontab" for one in commands) else lines
    if _runs_output(parsed[at], commands):
        inside = parsed[at + 1 : at + 1 + MAX_COMMAND_STARTS]
        closed = next((n for n, one in enumerate(inside, 1) if re.search(r"[)`]", one.end)), len(inside))
        yield from _print_all(inside[:closed])


def _runs_output(simple: SimpleCommand, commands: Sequence[Sequence[str]]) -> bool:
    """Whether what the next commands print is run: it stands where a command does, or a shell takes it."""
    is_taken = any(one[0] in _SHELLS or one[0] in _FED for one in commands)
    if simple.end.startswith("`"):
        return is_taken or not simple.words
    is_dollar = simple.end.startswith("(") and simple.words[-1:] and simple.words[-1].endswith("$")
    return (is_taken and simple.end.startswith("<(")) or (
        bool(is_dollar) and (is_taken or simple.words == ["$"])
    )


def _print_all(parsed: Sequence[SimpleCommand]) -> Iterator[str]:
    commands = [one for simple in parsed for one in _readings(simple.words)]
    return find_printed_texts(commands, [text for simple in parsed for text in simple.heredocs])


def _feeding(parsed: Sequence[SimpleCommand], at: int) -> Iterator[SimpleCommand]:
    """The commands of the same pipeline in front of one, groups in brackets included."""
    depth = 0
    for simple in reversed(parsed[max(0, at - MAX_COMMAND_STARTS) : at]):
        is_group = simple.words[-1:] == ["}"]
        depth += simple.end.count(")") - simple.end.count("(") + is_group
        is_piped = re.search(r"(?<!\|)\|(?!\|)", simple.end)
        if depth < 0 or not (depth or is_piped):
            return
        yield simple
        depth -= simple.words[:1] == ["{"]


def _reads_stdin(command: Sequence[str]) -> bool:
    """Whether it is a shell that is told what to do by its standard input."""
    program, *rest = command
    if program in _FED:
        return program in ("at", "batch") or rest[:1] == ["/dev/stdin"]
    if program == "crontab":
        return not rest or "-" in rest
    if program in _ELSEWHERE:
        starts = sorted(_starts(command, 1, _ELSEWHERE[program]))[:MAX_REMOTE_READINGS]
        inside = any(_program(command[start]) in _STDIN_SHELLS for start in starts)
        return inside or (program == "ssh" and not starts and len(command) > 1)
    if program not in _STDIN_SHELLS:
        return False
    for at, word in enumerate(rest):
        if word in ("-s", "-", "/dev/stdin"):
            return True
        if not word.startswith(("-", "+")):
            return at > 0 and rest[at - 1] in _SHELL_VALUES
        if re.fullmatch(r"-[a-z]*c[a-z]*", word):
            return False
    return True


def _program(word: str) -> str:
    return (word.rpartition("/")[2] or word).removesuffix(".exe")


def _begins(command: Sequence[str], wanted: Sequence[str]) -> bool:
    if not command or not matches_name(wanted[0], command[0]):
        return False
    valued = _VALUED.get(command[0])
    at = 1
    for want in wanted[1:]:
        may_be_value = False
        while at < len(command) and (_takes_next(valued, command[at]) or not matches_name(want, command[at])):
            is_option = command[at].startswith("-")
            if not is_option and not may_be_value and not _is_passed(command, at):
                return False
            # Of a program that is known the value goes with its option, and is never what is wanted.
            at += 2 if _takes_next(valued, command[at]) else 1
            may_be_value = is_option and valued is None
        if at >= len(command):
            return False
        at, valued = at + 1, None
    return True


def _is_passed(command: Sequence[str], at: int) -> bool:
    """Whether a word may stand before the one that is wanted: a variable, another target of `make`, or the
    toolchain of `cargo`."""
    is_toolchain = command[0] == "cargo" and at == 1 and command[at].startswith("+")
    return is_toolchain or command[0] == "make" or _ASSIGNED.match(command[at]) is not None


def _takes_next(valued: frozenset[str] | None, word: str) -> bool:
    return valued is not None and word in valued
