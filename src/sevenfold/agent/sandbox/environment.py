"""What a command finds in its environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from sevenfold.agent.sandbox.namespaces import SCRATCH
from sevenfold.core.profile import SandboxProfile

_SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|AUTH)$", re.IGNORECASE)
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

_QUIET = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "TERM": "dumb",
}
"""Nobody sits in front of it: what asks or pages would wait for ever."""

_GIT = {
    "core.fsmonitor": "",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "core.sshCommand": "false",
    "credential.helper": "",
}
"""Git runs programs that a repository names, while it only looks; where nothing may change, none of them."""


def build_open_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The user's own."""
    return {"PATH": os.defpath, **environ, **_QUIET}


def build_sandboxed_environ(environ: Mapping[str, str], profile: SandboxProfile) -> dict[str, str]:
    """Without keys, and without ways to other programs of the user's."""
    kept = {
        name: value
        for name, value in build_open_environ(environ).items()
        if not _SECRET.search(name) and name not in _LEADS_OUT
    }
    if profile == "read-only":
        return kept | _git_off()
    return kept | {"TMPDIR": SCRATCH, "TMP": SCRATCH, "TEMP": SCRATCH}


def _git_off() -> dict[str, str]:
    found = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_COUNT": str(len(_GIT))}
    for at, (name, value) in enumerate(_GIT.items()):
        found |= {f"GIT_CONFIG_KEY_{at}": name, f"GIT_CONFIG_VALUE_{at}": value}
    return found
