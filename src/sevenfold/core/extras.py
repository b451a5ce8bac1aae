"""How an extra of this package is installed: `render_install_command`, which every hint uses.

A package from an index has its published name. One from a checkout, a file or a repository is installed from
there again, since its version may be on no index. Installers note the origin in `direct_url.json` (PEP 610).
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import cast

_PACKAGE = "sevenfold"


def render_install_command(*extras: str) -> str:
    """The command that adds the extras to this installation, for a shell in the current folder."""
    try:
        folder = os.getcwd()
    except OSError:  # it was removed
        folder = os.sep
    return f"{_render_pip(folder)} install {render_pip_arguments(_find_origin(), extras, folder)}"


def render_pip_arguments(origin: Mapping[str, object], extras: tuple[str, ...], folder: str) -> str:
    """What `pip install` is given: the published name, a path (relative within `folder`), or a URL."""
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    listed = f"[{','.join(extras)}]"
    published = shlex.quote(f"{_PACKAGE}{listed}")
    url = str(origin.get("url", ""))
    if not url:
        return published
    if not url.startswith("file:") or "vcs_info" in origin:
        return shlex.quote(f"{_PACKAGE}{listed} @ {_render_pinned(url, origin.get('vcs_info'))}")
    path = url2pathname(urlsplit(url).path)
    if not os.path.exists(path):  # a checkout that was deleted after the installation
        return published
    info = origin.get("dir_info")
    is_editable = isinstance(info, Mapping) and bool(cast("Mapping[str, object]", info).get("editable"))
    return ("-e " if is_editable else "") + shlex.quote(f"{_shorten(path, folder)}{listed}")


def _render_pinned(url: str, found: object) -> str:
    if not isinstance(found, Mapping):
        return url
    info = cast("Mapping[str, object]", found)
    commit = info.get("requested_revision") or info.get("commit_id")
    return f"{info.get('vcs', 'git')}+{url}" + (f"@{commit}" if commit else "")


def _shorten(path: str, folder: str) -> str:
    """Relative where it is the folder or in it. pip takes a path only with a slash in it, or `.`."""
    if os.path.commonpath((path, folder)) != folder:
        return path
    inside = os.path.relpath(path, folder)
    return inside if inside == "." else f"./{inside}"


def _find_origin() -> Mapping[str, object]:
    """What the installer noted; without an installation, the checkout this runs from. Empty: an index."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        text = distribution(_PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        checkout = Path(__file__).parents[3]
        is_checkout = (checkout / "pyproject.toml").is_file()
        return {"url": checkout.as_uri(), "dir_info": {"editable": True}} if is_checkout else {}
    try:
        found = cast("object", json.loads(text or "{}"))
    except ValueError:
        return {}
    return cast("Mapping[str, object]", found) if isinstance(found, dict) else {}


def _render_pip(folder: str) -> str:
    """The pip of this interpreter: by its name where that is the one on the path."""
    own, found = os.path.dirname(sys.executable), shutil.which("pip")
    if found is not None and os.path.dirname(found) == own:
        return "pip"
    python = sys.executable.removeprefix(os.path.join(folder, ""))
    return f"{shlex.quote(python if os.sep in python else sys.executable)} -m pip"
