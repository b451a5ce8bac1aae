"""A memory folder that a trusted setting puts somewhere else (SPEC F1), with the checks that this needs.

Writers fill this folder without asking, so it must be a folder meant for it: not a system folder, not one
that holds keys, no link, and not another project's.
"""

from __future__ import annotations

from pathlib import Path

from sevenfold.core.errors import ProjectError
from sevenfold.store.disk import Disk
from sevenfold.store.folder import TEMP, Folder
from sevenfold.store.git_root import real_path
from sevenfold.store.identity import claim, read_claim
from sevenfold.store.lock_face import FACE

CLAIM = ".sevenfold-project.json"
"""Hidden from whoever lists the memories."""

_SYSTEM = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
    "/System",
)
_SECRET = (".aws", ".azure", ".docker", ".gnupg", ".kube", ".password-store", ".ssh")
_EXPECTED = frozenset(["logs", "team", FACE, CLAIM, ".DS_Store"])


def open_elsewhere(path: Path, root: Path, disk: Disk) -> Folder:
    """Open and claim `path` as the memory folder of the project at `root`; `ProjectError` with the reason."""
    _refuse_place(path)
    folder = Folder.open(path, create=True, disk=disk, own=frozenset([CLAIM, FACE]))
    try:
        if read_claim(folder, CLAIM) is None:
            _refuse_strangers(folder)
        claim(folder, CLAIM, root)
    except BaseException:
        folder.close()
        raise
    return folder


def _refuse_place(path: Path) -> None:
    home = real_path(Path.home())
    real = real_path(path)
    named = [Path(folder) for folder in _SYSTEM] + [home / folder for folder in _SECRET]
    # By either name: on some systems /etc and /tmp are links.
    guarded = [*named, *map(real_path, named)]
    if real in (Path(real.anchor), home) or any(real.is_relative_to(folder) for folder in guarded):
        raise ProjectError(
            f"{path} cannot be a memory folder: it is your home folder itself, or lies in a system folder "
            "or one that holds keys; choose a folder of its own"
        )


def _refuse_strangers(folder: Folder) -> None:
    """A folder nobody claimed yet has to be empty, or hold memories and nothing else, hidden or not."""
    for name in folder.all_names():
        if not name.endswith(".md") and name not in _EXPECTED and not name.startswith(TEMP):
            raise ProjectError(
                f"{folder.path} holds {name!r}, so it does not look like a memory folder; "
                "choose an empty folder, or one with only .md files"
            )
