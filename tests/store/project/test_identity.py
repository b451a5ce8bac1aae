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
from sevenfold.store.files.folder import Folder, is_key_part
from sevenfold.store.project.project import (
    IDENTITY_FILE,
    claim_folder,
    hash_path,
    make_project_id,
    read_claim,
)
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
    assert len({make_project_id(root) for root in roots}) == len(roots)
    # Folders that ignore case and Unicode form keep them apart too.
    folded = {unicodedata.normalize("NFKC", make_project_id(root)).casefold() for root in roots}
    assert len(folded) == len(roots)


def test_roots_made_of_the_same_letters_never_share_an_identity() -> None:
    roots = {Path("/" + "".join(letters)) for letters in product("ab-/_.", repeat=6)}
    assert len({make_project_id(root) for root in roots}) == len(roots)


names = st.text(
    st.characters(exclude_characters="\0", codec="utf-8") | st.sampled_from("/-_. \udcff"), max_size=40
)


@given(names)
def test_an_identity_is_a_plain_name_that_begins_like_the_folder(name: str) -> None:
    root = Path("/", name)
    found = make_project_id(root)
    assert is_key_part(found)
    assert re.fullmatch(r"[a-z0-9-]{1,32}-[0-9a-f]{32}", found)
    assert found == make_project_id(root), "the same for the same root"
    readable = re.sub(r"[^a-z0-9]", "", root.name.lower())[:10]
    assert re.sub(r"[^a-z0-9]", "", found).startswith(readable[:1])


def test_identities_never_change() -> None:
    """Memories are found by them: these names are a promise."""
    assert make_project_id(Path("/srv/My Project")) == "my-project-" + hash_path(Path("/srv/My Project"))[:32]
    assert make_project_id(Path("/")) == "project-8a5edab282632443219e051e4ade2d1d"
    assert make_project_id(Path("/项目")).startswith("project-")


def test_a_folder_is_claimed_once_and_known_again(folder: Folder) -> None:
    root = Path("/srv/app")
    assert read_claim(folder, IDENTITY_FILE) is None
    claim_folder(folder, IDENTITY_FILE, root)
    before = tree(folder.path)
    claim_folder(folder, IDENTITY_FILE, root)
    assert tree(folder.path) == before
    assert read_claim(folder, IDENTITY_FILE) == hash_path(root)


def test_another_projects_folder_is_refused_and_left_alone(folder: Folder) -> None:
    claim_folder(folder, IDENTITY_FILE, Path("/srv/app"))
    before = tree(folder.path)
    with pytest.raises(ProjectError, match="belongs to another project"):
        claim_folder(folder, IDENTITY_FILE, Path("/srv/App"))
    assert tree(folder.path) == before


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[]", b"{", b'{"fingerprint":7}', b"\xff", b"x" * 70_000],
    ids=lambda data: ascii(data)[:20],
)
def test_a_damaged_claim_is_refused_rather_than_replaced(folder: Folder, content: bytes) -> None:
    folder.replace(IDENTITY_FILE, content)
    with pytest.raises(ProjectError):
        claim_folder(folder, IDENTITY_FILE, Path("/srv/app"))
    assert folder.read(IDENTITY_FILE, max_bytes=100_000) == content


def test_a_root_that_is_no_text_can_claim_a_folder(folder: Folder) -> None:
    root = Path(os.fsdecode(b"/srv/\xff\xfe"))
    claim_folder(folder, IDENTITY_FILE, root)
    assert read_claim(folder, IDENTITY_FILE) == hash_path(root)
    assert b"\\xff\\xfe" in folder.read(IDENTITY_FILE, max_bytes=1000).replace(b"\\\\", b"\\")


def test_of_many_that_claim_at_once_one_wins(folder: Folder) -> None:
    told, tell = os.pipe()

    def try_to_claim(name: str) -> None:
        try:
            claim_folder(folder, IDENTITY_FILE, Path("/srv", name))
            os.write(tell, name.encode())
        except ProjectError:
            os.write(tell, b".")

    children.expect_success([lambda name=name: try_to_claim(name) for name in "abcdef"])
    answers = os.read(told, 100).decode()
    os.close(told)
    os.close(tell)
    winner = answers.replace(".", "")
    assert len(winner) == 1
    assert read_claim(folder, IDENTITY_FILE) == hash_path(Path("/srv", winner))
