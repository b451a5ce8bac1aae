"""Paths where a file is executed later, decides what may be executed, or holds a key."""

from __future__ import annotations

import unicodedata
from pathlib import Path

_RUN_LATER = frozenset(
    {
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".inputrc"),
        *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login"),
        *(
            ".gitconfig",
            ".gitmodules",
            ".gitattributes",
            ".envrc",
            ".mcp.json",
            ".npmrc",
            ".yarnrc",
            ".pypirc",
        ),
        *(".vimrc", ".exrc", ".tmux.conf", ".pdbrc", ".pythonrc", ".gdbinit", ".lldbinit", ".xinitrc"),
    }
)
"""Files that some program obeys because of their name."""

_GUARDED = frozenset({".git", ".hg", ".svn", ".husky", ".vscode", ".idea", ".devcontainer", ".direnv"})
"""Folders with hooks, tasks and settings that run commands."""

_SECRET = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".gcloud"})
_SECRET_FILES = frozenset({".netrc", ".pgpass", ".git-credentials", ".vault-token"})
"""Keys: reading them is asked for too."""

_OURS = frozenset({".sevenfold", ".claude"})
_OUR_RULES = ("settings", "hooks", "agents", "skills", "commands", "plugins")
"""Of our own folder and of another agent's: what decides, or is run. Plain notes there are plain files."""

_STARTED = frozenset({"autostart", "systemd", "fish", "environment.d", "git"})
"""Folders of `.config` whose files are run, or say what is."""

_SYSTEM_FOLDERS = (
    *("/etc/", "/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/boot/", "/opt/", "/dev/", "/proc/", "/sys/"),
    "/var/spool/",
)


def explain_guarded(real: str, root: Path, home: Path | None) -> str | None:
    """Why an edit of this path is asked for in any mode; None: it is a file like others.

    Wide on purpose: a name that only looks like one of these may be that one on another disk.
    """
    if home is not None and Path(real).is_relative_to(home):
        return "it is among this program's own files"
    if not Path(real).is_relative_to(root) and real.startswith(_SYSTEM_FOLDERS):
        return "it is a system file"
    parts = _parts(real, root)
    if parts and parts[-1] in _RUN_LATER:
        return f"programs obey {parts[-1]}"
    if any(part in _GUARDED or part.startswith("git~") for part in parts):
        return "what lies there can run commands later"
    if _is_rule(parts):
        return "it decides what agents may do"
    return explain_secret(real, root)


def explain_secret(real: str, root: Path) -> str | None:
    """Why even reading this path is asked for; None: it is a file like others."""
    parts = _parts(real, root)
    if any(part in _SECRET for part in parts) or (parts and parts[-1] in _SECRET_FILES):
        return "keys are kept there"
    return None


def fold_name(part: str) -> str:
    """A name as the most forgiving disk reads it: no case, no invisible characters, no dots at its end."""
    seen = "".join(one for one in unicodedata.normalize("NFKC", part) if unicodedata.category(one) != "Cf")
    return seen.casefold().partition(":")[0].rstrip(" .")


def _parts(real: str, root: Path) -> list[str]:
    """The names to judge by. Where the project itself lies says nothing about its files."""
    path = Path(real)
    names = path.relative_to(root).parts if path.is_relative_to(root) else path.parts[1:]
    return [fold_name(name) for name in names]


def _is_rule(parts: list[str]) -> bool:
    for at, part in enumerate(parts):
        below = parts[at + 1 : at + 2]
        if part in _OURS and (not below or below[0].startswith(_OUR_RULES)):
            return True
        if part == ".config" and below and below[0] in _STARTED:
            return True
    return False
