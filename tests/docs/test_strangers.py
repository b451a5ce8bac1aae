"""Nothing in the repository knows whose machine it was written on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.contracts.source_tree import relative, tracked_files

pytestmark = pytest.mark.gate

# Put together here, so that this file does not say what it forbids.
FOLDERS = tuple(f"/{name}/" for name in ("work", "root", "home/[a-z]", "Users/[A-Za-z]"))
HOSTS = tuple(
    f"{first}[.]{rest}"
    for first, rest in [
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "(?:org|com)"),
        ("deb[.]debian", "org"),
    ]
)
LOCAL = re.compile("|".join([*(rf"(?<![\w.}}/~-]){folder}" for folder in FOLDERS), *HOSTS]))


def local_names(text: str) -> list[str]:
    return LOCAL.findall(text)


def test_no_file_names_a_local_path_or_a_package_index() -> None:
    found: dict[str, list[str]] = {}
    for path in tracked_files():
        try:
            names = local_names(path.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            continue
        if names:
            found[relative(path)] = names
    assert found == {}


@pytest.mark.parametrize(
    "parts",
    [
        ("see /wo", "rk/main/x"),
        ("'/ro", "ot/.cache'"),
        ("https://py", "pi.org/simple"),
        ("files.python", "hosted.org"),
    ],
)
def test_a_local_name_is_found(parts: tuple[str, str]) -> None:
    assert local_names("".join(parts)) != []


@pytest.mark.parametrize(
    "text", ["a/work/b", "rework/root", "the root/ of it", "src/root/x", "https://example.org/home/x"]
)
def test_a_name_that_only_looks_local_passes(text: str) -> None:
    assert local_names(text) == []


def test_the_pins_name_versions_and_hashes_and_no_addresses() -> None:
    lines = (Path(__file__).parents[2] / "constraints.txt").read_text(encoding="ascii").splitlines()
    pins = [line for line in lines if not line.startswith(" ")]
    assert pins
    for line in pins:
        assert re.fullmatch(r"[a-z0-9.-]+==[\w.]+( ; [\w' =<>!.]+)? \\", line), line
    for line in set(lines) - set(pins):
        assert re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line), line
