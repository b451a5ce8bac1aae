"""Two roots never share an identity, and a folder is never taken for another project's."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.errors import ProjectError
from sevenfold.store.folder import Folder
from sevenfold.store.identity import IDENTITY, claim, fingerprint, identify, read_claim
from sevenfold.store.keys import is_part
from tests.store import children
from tests.store.disks import tree

WORDS = (
    "app",
    "App",
    "é",
    "e\u0301",
    "ﬁ",
    "fi",
    "ß",
    "ss",
    "项目",
    "プロ",
    "a-b",
    "a_b",
    "a b",
    "\udcff",
    "İ",
    "i̇",
)


def twins(path: str) -> Iterator[str]:
    """What a careless name would take for the same: case, Unicode form, separators, a part more or less."""
    yield path
    yield path.upper()
    yield path.lower()
    yield path.swapcase()
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        if "\udcff" not in path:
            yield unicodedata.normalize(form, path)
    for old, new in ("/-", "-/", "/_", "_-", "-.", " -"):
        yield "/" + path[1:].replace(old, new)
    yield f"{path}/x"
    yield f"{path}-x"
    yield f"{path} "
    yield f"{path}."
    yield path.rpartition("/")[0] or "/"


def generated_paths(count: int) -> set[str]:
    random = Random("identity")
    found: set[str] = set()
    while len(found) < count:
        depth = random.randint(1, 6)
        found.update(
            twins("/" + "/".join(random.choice(WORDS) + str(random.randint(0, 30)) for _ in range(depth)))
        )
    return found


def test_roots_that_differ_at_all_never_share_an_identity() -> None:
    roots = {Path(path) for path in generated_paths(30_000)}
    assert len(roots) >= 20_000
    assert len({identify(root) for root in roots}) == len(roots)
    # Folders that ignore case and Unicode form keep them apart too.
    folded = {unicodedata.normalize("NFKC", identify(root)).casefold() for root in roots}
    assert len(folded) == len(roots)


def test_roots_made_of_the_same_letters_never_share_an_identity() -> None:
    roots = {Path("/" + "".join(letters)) for letters in product("ab-/_.", repeat=6)}
    assert len({identify(root) for root in roots}) == len(roots)


names = st.text(
    st.characters(exclude_characters="\0", codec="utf-8") | st.sampled_from("/-_. \udcff"), max_size=40
)


@given(names)
def test_an_identity_is_a_plain_name_that_begins_like_the_folder(name: str) -> None:
    root = Path("/", name)
    found = identify(root)
    assert is_part(found)
    assert re.fullmatch(r"[a-z0-9-]{1,32}-[0-9a-f]{32}", found)
    assert found == identify(root), "the same for the same root"
    readable = re.sub(r"[^a-z0-9]", "", root.name.lower())[:10]
    assert re.sub(r"[^a-z0-9]", "", found).startswith(readable[:1])


def test_identities_never_change() -> None:
    """Memories are found by them: these names are a promise."""
    assert identify(Path("/srv/My Project")) == "my-project-" + fingerprint(Path("/srv/My Project"))[:32]
    assert identify(Path("/")) == "project-8a5edab282632443219e051e4ade2d1d"
    assert identify(Path("/项目")).startswith("project-")


def test_a_folder_is_claimed_once_and_known_again(folder: Folder) -> None:
    root = Path("/srv/app")
    assert read_claim(folder, IDENTITY) is None
    claim(folder, IDENTITY, root)
    before = tree(folder.path)
    claim(folder, IDENTITY, root)
    assert tree(folder.path) == before
    assert read_claim(folder, IDENTITY) == fingerprint(root)


def test_another_projects_folder_is_refused_and_left_alone(folder: Folder) -> None:
    claim(folder, IDENTITY, Path("/srv/app"))
    before = tree(folder.path)
    with pytest.raises(ProjectError, match="belongs to another project"):
        claim(folder, IDENTITY, Path("/srv/App"))
    assert tree(folder.path) == before


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[]", b"{", b'{"fingerprint":7}', b"\xff", b"x" * 70_000],
    ids=lambda data: ascii(data)[:20],
)
def test_a_damaged_claim_is_refused_rather_than_replaced(folder: Folder, content: bytes) -> None:
    folder.replace(IDENTITY, content)
    with pytest.raises(ProjectError):
        claim(folder, IDENTITY, Path("/srv/app"))
    assert folder.read(IDENTITY, max_bytes=100_000) == content


def test_a_root_that_is_no_text_can_claim_a_folder(folder: Folder) -> None:
    root = Path(os.fsdecode(b"/srv/\xff\xfe"))
    claim(folder, IDENTITY, root)
    assert read_claim(folder, IDENTITY) == fingerprint(root)
    assert b"\\xff\\xfe" in folder.read(IDENTITY, max_bytes=1000).replace(b"\\\\", b"\\")


def test_of_many_that_claim_at_once_one_wins(folder: Folder) -> None:
    told, tell = os.pipe()

    def try_to_claim(name: str) -> None:
        try:
            claim(folder, IDENTITY, Path("/srv", name))
            os.write(tell, name.encode())
        except ProjectError:
            os.write(tell, b".")

    children.expect_success([lambda name=name: try_to_claim(name) for name in "abcdef"])
    answers = os.read(told, 100).decode()
    os.close(told)
    os.close(tell)
    winner = answers.replace(".", "")
    assert len(winner) == 1
    assert read_claim(folder, IDENTITY) == fingerprint(Path("/srv", winner))
