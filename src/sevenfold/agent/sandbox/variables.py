"""Which environment variables a sandboxed command gets: none that looks like a secret by name or value."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Collection, Mapping
from functools import lru_cache

from sevenfold.core.secrets import find_secrets

_SECRET_NAME = re.compile(
    r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|AUTH|_PASS|_PWD|_PAT|_DSN)$", re.IGNORECASE
)
_PASSWORD_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@")
"""An address with a password in it, whatever it leads to."""
_SECRET_VALUE = re.compile(
    r"\b(?:sk|rk|pk)[-_](?:live|test|ant|proj)[-_]\w{8,}|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}"
    r"|\bglpat-[\w-]{16,}|\bxox[abprs]-[\w-]{10,}|\bAKIA[0-9A-Z]{16}\b|\bsfm_[a-z0-9]{1,40}_[\w-]{43}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY"
)
"""The best-known forms, for a machine without the engine that all rules need."""
_PLAIN = frozenset(
    {"PATH", "HOME", "PWD", "OLDPWD", "SHELL", "USER", "LOGNAME", "LANG", "TERM", "TMPDIR", "_"}
)
"""Names that every program needs, and whose values are the system's."""

_LEADS_OUT = frozenset(
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
    if not value or name in _PLAIN:
        return False
    if _SECRET_NAME.search(name) or _PASSWORD_URL.search(value) or _SECRET_VALUE.search(value):
        return True
    found = find_secrets(f"{name}={value}", key=_FINGERPRINT_KEY)
    return bool(found.findings) or found.refusal not in (None, "no engine")


def leads_out(name: str) -> bool:
    """Whether a variable names a way to another program of the user's."""
    return name in _LEADS_OUT
