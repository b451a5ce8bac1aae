"""A command and its supervisor process: start, read output, end with all descendants; and its environment.

A sandboxed command gets no variable that looks like a secret, by its name or by its value, and no way to
other programs of the user's. A variable withheld by mistake costs a setting; one that is passed on by mistake
is shown to a model. So more counts here than in the scan of memories: short passwords in assignments,
options, headers too.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from sevenfold.agent.sandbox.kernel import SCRATCH
from sevenfold.agent.sandbox.supervisor import LaunchSpec
from sevenfold.core.secrets import find_secrets
from sevenfold.core.tool_kinds import SandboxProfile

_START = (
    "import sys; sys.path.append(sys.argv[1]); from sevenfold.agent.sandbox.supervisor import "
    "supervise_command; "
    "supervise_command(int(sys.argv[2]), int(sys.argv[3]))"
)
_PACKAGES = str(Path(__file__).resolve().parents[3])
"""Where our own package lies, for an interpreter that looks nowhere by itself."""

READ_CHUNK_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class CommandExit:
    """How a command came to its end."""

    code: int
    """As a shell tells it: 128 and more for a signal."""
    left: int = 0
    """Processes that it had left running; they were ended too."""
    failure: str = ""
    """Why it never ran."""
    is_crowded: bool = False
    """It was ended for starting too many processes."""


class SupervisedCommand:
    """One that runs. Whoever has it closes it, which ends whatever is left of it."""

    def __init__(self, orders: LaunchSpec) -> None:
        """Start it. If it cannot be sandboxed nothing runs, and its end says so."""
        self._output, printing = os.pipe()
        self._status, telling = os.pipe()
        theirs, self._life = os.pipe()
        given = os.memfd_create("orders")
        os.write(given, orders.pack())
        os.lseek(given, 0, os.SEEK_SET)
        try:
            # Isolated from the user's own modules and settings of Python: they must not affect the sandbox.
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _START, _PACKAGES, str(given), str(telling)],
                stdin=theirs,
                stdout=printing,
                stderr=printing,
                pass_fds=(given, telling),
                env={},
                cwd="/",
                start_new_session=True,
            )
        except BaseException:
            for file in (self._output, self._status, self._life):
                os.close(file)
            raise
        finally:
            for file in (printing, telling, theirs, given):
                os.close(file)
        os.set_blocking(self._output, False)
        self._ending: asyncio.Task[CommandExit] | None = None
        self._ready = asyncio.Event()
        self._is_over = False

    async def read(self) -> bytes:
        """What it prints next; nothing when it and all that it started have ended."""
        loop = asyncio.get_running_loop()
        self._watch_end()
        loop.add_reader(self._output, self._ready.set)
        try:
            while True:
                is_over = self._is_over
                with suppress(BlockingIOError):
                    return os.read(self._output, READ_CHUNK_BYTES)
                if is_over:
                    return b""
                self._ready.clear()
                await self._ready.wait()
        finally:
            loop.remove_reader(self._output)

    def ask_to_end(self) -> None:
        """Politely, with a moment's grace."""
        with suppress(OSError):
            os.write(self._life, b"t")

    def end(self) -> None:
        """Now, with everything that it started; a reader sees the end of the output."""
        self._let_go("_life")

    async def wait(self) -> CommandExit:
        """Until it and all that it started have ended. Cancelled, it runs on."""
        return await asyncio.shield(self._watch_end())

    async def close(self) -> CommandExit:
        """End it if it still runs, and come back when all of it is gone. Nobody may be reading it."""
        self.end()
        try:
            return await self.wait()
        finally:
            self._let_go("_output")

    def _watch_end(self) -> asyncio.Task[CommandExit]:
        if self._ending is None:
            self._ending = asyncio.create_task(self._until_ended())
        return self._ending

    async def _until_ended(self) -> CommandExit:
        status = b""
        while part := await _read(self._status):
            status += part
        # Its end of the pipe closed because it is exiting.
        self._process.wait()
        self._let_go("_status")
        # A program that became another user's may still hold the output; nobody waits for it.
        self._is_over = True
        self._ready.set()
        return _parse(status.decode("utf-8", "replace"))

    def _let_go(self, name: str) -> None:
        file = getattr(self, name)
        if file >= 0:
            setattr(self, name, -1)
            os.close(file)


async def _read(file: int) -> bytes:
    ready = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(file, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(file)
    return os.read(file, READ_CHUNK_BYTES)


def _parse(status: str) -> CommandExit:
    code, left, failure, is_crowded = 128 + 9, 0, "", False
    for line in status.splitlines():
        word, _, rest = line.partition(" ")
        if word == "failed":
            failure = rest
        elif word == "crowded":
            is_crowded = True
        elif word == "ended":
            code, left = (int(number) for number in rest.split())
    if not status:
        failure = "its supervisor was ended from outside"
    return CommandExit(code, left, failure, is_crowded)


_SECRET_NAME = re.compile(
    r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWORDS|CREDENTIALS?|COOKIES?|PASSWD|PASSPHRASE|PASSCODE|CREDS|AUTH(?:ORIZATION)?"
    r"|BEARER|JWT|ID_(?:RSA|DSA|ECDSA|ED25519)|MNEMONIC|SECRETACCESS|SIGNATURE|(?:USER|DB|SSH|_|^)(?:PASS|PWD?|PAT|DSN|PIN|OTP))"
    r"(?:_?\d+|_(?:BASE|PROD|PRODUCTION|LIVE|DEV|TEST|STAGING|OLD|NEW|VALUE|DEFAULT|ADMIN|ROOT|STRING))?$",
    re.IGNORECASE,
)
_SECRET_PART = re.compile(
    r"(?:^|_)(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|CREDENTIALS?|CREDS)_|(?:^|_)(?:SALT|SEED|HMAC)$|(?:KEY|TOKEN|SECRET)S$",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(r"[/~.]\S*|[+-]?\d+(?:\.\d+)?|true|false|yes|no|on|off|none|null", re.IGNORECASE)
"""A path, a number or a switch: `PASSWORD_STORE_DIR`, `SECRET_ROTATION_DAYS`."""
_PASSWORD_URL = re.compile(
    r"\b[A-Za-z][A-Za-z0-9+.-]{0,40}://[^/\s:@]{0,200}:[^/\s@]{1,500}@|\bjdbc:oracle:\w+:[^/\s]{1,200}/[^@\s]{1,200}@"
)
"""An address with a password in it, whatever it leads to."""
_SECRET_VALUE = re.compile(
    r"\b(?:sk|rk|pk)[-_](?:live|test|ant|proj)[-_]\w{8,}|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}"
    r"|\bglpat-[\w-]{16,}|\bxox[abprs]-[\w-]{10,}|\bAKIA[0-9A-Z]{16}\b|\bsfm_[a-z0-9]{1,40}_[\w-]{43}"
    r"|\bhv[sbr]\.\w{6,}|-----BEGIN [A-Z ]*PRIVATE KEY"
)
"""The best-known forms, also shorter than an issuer makes them."""
_SECRET_LINE = re.compile(
    r"(?:^|\s)(?:-u|--user|--proxy-user)[ =]?[^\s:-][^\s:]*:[^\s:]{3,}"  # of curl
    r"|(?:^|\s)-p(?=\S*[a-z])(?=\S*\d)\S{6,}"  # of mysql
    r"|(?:^|\s)--?[\w-]{0,40}(?:password|passwd|passphrase|token|secret|api-?key) +[^\s-]\S{2,}"
    r"|\blogin\s+\S+\s+password\s+\S"  # a line of .netrc
    r"|\b(?:bearer|basic)\s+(?=\S*\d)[\w.~+/=-]{8,}|^(?:set-)?cookie:\s*\S"
    r"|^[^:\s]+:(?:\d+|\*):[^:\s]*:[^:\s]+:[^:\s]+$"  # a line of .pgpass
    r"|://hooks?\.[\w.-]+/\S{8,}|://\S{1,200}/webhooks?/\S{16,}",
    re.IGNORECASE,
)
"""Command lines, headers and files whose form says that a password stands in them."""
_ASSIGNED = re.compile(
    r"(?:password|passwd|passphrase|passcode|\bpwd|\bpass|secret|token|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|account[_-]?key|license[_-]?key|key-data|credentials?|authorization|\bauth|identitytoken|cookie|signature"
    r"|\bsig|(?<=[?&])key)s?[\"']?\s*(?:=>|[=:])\s*[\"']?(?P<value>[^\s\"';&,}]{3,})",
    re.IGNORECASE,
)
"""A secret by the name that it is assigned to: in JSON, YAML, an option, a connection string, a query."""
_REFERENCE = re.compile(r"[$%<{*]|x{3,}", re.IGNORECASE)
_LABEL = re.compile(r"^(?:base64:|basic\s+|bearer\s+)", re.IGNORECASE)
"""What says how a value is to be read: of Laravel's key, of a header."""
_SERIALIZED = re.compile(
    r"\"[^\"]*(?:password|secret|token|api_?key)[^\"]*\";s:\d+:\"[^\"]{3,}", re.IGNORECASE
)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}")
_TOKEN = re.compile(r"[\w+/=.-]+")
_MAX_VALUE_CHARS = 16_384
"""What is longer is a file in a variable, and takes too long to look through."""
PLAIN_VARIABLES = frozenset(
    {"PATH", "HOME", "PWD", "OLDPWD", "SHELL", "USER", "LOGNAME", "LANG", "TERM", "TMPDIR", "_"}
)
"""Names that every program needs, and whose values are the system's."""

_PROGRAM_ADDRESSES = frozenset(
    {
        "SSH_AUTH_SOCK",
        "SSH_AGENT_PID",
        "DBUS_SESSION_BUS_ADDRESS",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "GPG_AGENT_INFO",
    }
)
"""Ways to other programs of the user's."""

_FINGERPRINT_KEY = secrets.token_bytes(16)
"""Of this process: what is found here is shown to nobody."""

_QUIET = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "TERM": "dumb",
}
"""Nobody sits in front of it: what asks or pages would wait for ever."""


def build_open_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The user's own."""
    return {"PATH": os.defpath, **environ, **_QUIET}


def list_secret_variables(environ: Mapping[str, str], passed: Collection[str] = ()) -> tuple[str, ...]:
    """The names of variables that a sandboxed command does not get, sorted; `passed` are those it gets all
    the same."""
    return tuple(
        sorted(
            name for name, value in environ.items() if name not in passed and is_secret_variable(name, value)
        )
    )


@lru_cache(maxsize=1_024)
def is_secret_variable(name: str, value: str) -> bool:
    """Whether a variable looks like a secret: its name says so, or its value holds one."""
    if not value or name in PLAIN_VARIABLES:
        return False
    if _SECRET_NAME.search(name) or (_SECRET_PART.search(name) and not _NO_SECRET.fullmatch(value)):
        return True
    if len(value) > _MAX_VALUE_CHARS or _holds_secret(value) or _holds_secret(_decode(value)):
        return True
    bare = _LABEL.sub("", value)
    if bare != value and (is_secret_variable(name, bare) or ":" in _decode(bare)):
        return True
    # In quotes a hash is a value that was assigned, and not what a sentence names.
    texts = (f"{name}={value}", f'{name}="{value}"') if _TOKEN.fullmatch(value) else (f"{name}={value}",)
    inspections = [find_secrets(text, key=_FINGERPRINT_KEY) for text in texts]
    return any(one.findings or one.refusal not in (None, "no engine") for one in inspections)


def _holds_secret(text: str) -> bool:
    if (
        _SERIALIZED.search(text)
        or _PASSWORD_URL.search(text)
        or _SECRET_VALUE.search(text)
        or _SECRET_LINE.search(text)
    ):
        return True
    values = (match["value"] for match in _ASSIGNED.finditer(text))
    return any(not _NO_SECRET.fullmatch(value) and not _REFERENCE.match(value) for value in values)


def _decode(value: str) -> str:
    """The text that a value is base64 of, as files are put into variables; or nothing."""
    packed = "".join(value.split()).replace("-", "+").replace("_", "/")
    if not _BASE64.fullmatch(packed):
        return ""
    try:
        return base64.b64decode(packed.rstrip("=") + "=" * (-len(packed.rstrip("=")) % 4)).decode()
    except ValueError:
        return ""


def is_program_address(name: str) -> bool:
    """Whether a variable names a way to another program of the user's."""
    return name in _PROGRAM_ADDRESSES


_GIT = {
    "core.fsmonitor": "",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "core.sshCommand": "false",
    "credential.helper": "",
}
"""Git runs programs that a repository names, while it only looks; where nothing may change, none of them."""


def build_sandboxed_environ(
    environ: Mapping[str, str], profile: SandboxProfile, passed: Collection[str] = ()
) -> dict[str, str]:
    """Without secrets, and without ways to other programs of the user's."""
    withheld = frozenset(list_secret_variables(environ, passed))
    kept = {
        name: value
        for name, value in build_open_environ(environ).items()
        if name not in withheld and not is_program_address(name)
    }
    if profile == "read-only":
        return kept | _git_off()
    return kept | {"TMPDIR": SCRATCH, "TMP": SCRATCH, "TEMP": SCRATCH}


def _git_off() -> dict[str, str]:
    found = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_COUNT": str(len(_GIT))}
    for at, (name, value) in enumerate(_GIT.items()):
        found |= {f"GIT_CONFIG_KEY_{at}": name, f"GIT_CONFIG_VALUE_{at}": value}
    return found
