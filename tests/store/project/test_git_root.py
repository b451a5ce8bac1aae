"""One root for a repository and all its worktrees; and nobody gets another's by pointing at it."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

import pytest

from sevenfold.core.errors import AccessDenied, FileMissing, KeyRefused
from sevenfold.core.events import Event, WorktreeDisowned
from sevenfold.store.project.git import find_project_root, real_path
from tests.store.repos import git, make_repo


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """Where nothing above is a repository and nothing is a link."""
    return real_path(tmp_path)


@pytest.fixture
def repo(top: Path) -> Path:
    return make_repo(top / "repo")


@pytest.fixture
def worktree(repo: Path, top: Path) -> Path:
    git(repo, "worktree", "add", "--quiet", str(top / "wt"), "-b", "side")
    return top / "wt"


def test_a_folder_outside_any_repository_is_its_own_root(top: Path) -> None:
    (top / "a" / "b").mkdir(parents=True)
    assert find_project_root(top / "a" / "b") == top / "a" / "b"


def test_any_folder_of_a_repository_has_its_root(repo: Path) -> None:
    (repo / "a" / "b").mkdir(parents=True)
    assert find_project_root(repo) == find_project_root(repo / "a" / "b") == repo


def test_a_folder_that_is_not_there_yet_has_a_root_too(repo: Path) -> None:
    assert find_project_root(repo / "not" / "yet") == repo


def test_all_worktrees_share_the_root_of_their_repository(
    repo: Path, worktree: Path, events: list[Event]
) -> None:
    git(repo, "worktree", "add", "--quiet", str(repo / "inside"), "-b", "inner")
    (worktree / "deep").mkdir()
    for folder in (repo, worktree, worktree / "deep", repo / "inside"):
        assert find_project_root(folder, emit=events.append) == repo
    assert events == []


def test_worktrees_with_relative_pointers_share_it_too(repo: Path, worktree: Path) -> None:
    git_dir = repo / ".git" / "worktrees" / "wt"
    (worktree / ".git").write_text(f"gitdir: {os.path.relpath(git_dir, worktree)}\n", encoding="utf-8")
    (git_dir / "gitdir").write_text(os.path.relpath(worktree / ".git", git_dir) + "\n", encoding="utf-8")
    assert find_project_root(worktree) == repo


def test_links_to_a_repository_and_its_worktrees_lead_to_the_same_root(repo: Path, worktree: Path) -> None:
    for name, target in (("a", repo), ("b", worktree)):
        (repo.parent / name).symlink_to(target)
        assert find_project_root(repo.parent / name) == repo


@pytest.mark.parametrize("name", ["bare.git", "bare"])
def test_worktrees_of_a_bare_repository_share_its_folder(repo: Path, top: Path, name: str) -> None:
    git(top, "clone", "--quiet", "--bare", str(repo), name)
    for number in (1, 2):
        git(top / name, "worktree", "add", "--quiet", str(top / f"wt{number}"), "-b", f"b{number}")
        assert find_project_root(top / f"wt{number}") == top / name
    assert find_project_root(top / name) == top / name


def test_a_bare_repository_beside_its_worktrees(repo: Path, top: Path, events: list[Event]) -> None:
    """proj/.bare holds the repository, proj/.git points to it, proj/main is a worktree."""
    (top / "proj").mkdir()
    git(top / "proj", "clone", "--quiet", "--bare", str(repo), ".bare")
    (top / "proj" / ".git").write_text("gitdir: ./.bare\n", encoding="utf-8")
    for name in ("one", "two"):
        git(top / "proj", "worktree", "add", "--quiet", name, "-b", name)
    for folder in ("", "one", "two"):
        assert find_project_root(top / "proj" / folder, emit=events.append) == top / "proj" / ".bare"
    assert events == []


@pytest.fixture
def parent(repo: Path, top: Path) -> Path:
    made = make_repo(top / "parent")
    git(made, "submodule", "--quiet", "add", str(repo), "libs/sub")
    git(made, "commit", "--quiet", "-m", "with a submodule")
    return made


def test_a_submodule_is_a_project_of_its_own(parent: Path, repo: Path, events: list[Event]) -> None:
    sub = parent / "libs" / "sub"
    (sub / "deep").mkdir()
    assert find_project_root(sub / "deep", emit=events.append) == sub
    assert find_project_root(parent / "libs") == parent
    assert events == []


def test_worktrees_of_a_submodule_share_its_root(parent: Path, top: Path) -> None:
    sub = parent / "libs" / "sub"
    git(sub, "worktree", "add", "--quiet", str(top / "subwt"), "-b", "side")
    assert find_project_root(top / "subwt") == sub
    (sub / ".git").write_text("gitdir: /elsewhere\n", encoding="utf-8")
    assert find_project_root(top / "subwt") == parent / ".git" / "modules" / "libs" / "sub"


def test_submodules_in_two_worktrees_of_their_parent_are_each_their_own(parent: Path, top: Path) -> None:
    git(parent, "worktree", "add", "--quiet", str(top / "parentwt"), "-b", "side")
    git(top / "parentwt", "submodule", "--quiet", "update", "--init")
    assert find_project_root(top / "parentwt") == parent
    assert find_project_root(top / "parentwt" / "libs" / "sub") == top / "parentwt" / "libs" / "sub"


def make_separate(work: Path, git_dir: Path, *files: str) -> Path:
    """A checkout with its git folder elsewhere, as git makes it: with no pointer back."""
    made = make_repo(work, f"--separate-git-dir={git_dir}")
    for name in files:
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(name, encoding="utf-8")
        git(made, "add", name)
    assert "worktree" not in (git_dir / "config").read_text(encoding="utf-8")
    return made


@pytest.mark.parametrize("files", [(), ("a.txt",), ("a.txt", "deep/b.txt")], ids=len)
def test_a_checkout_whose_git_folder_lies_elsewhere_shares_it_with_its_worktrees(
    top: Path, files: tuple[str, ...], events: list[Event]
) -> None:
    (top / "gits").mkdir()
    work = make_separate(top / "work", top / "gits" / "work.git", *files)
    git(work, "commit", "--quiet", "--allow-empty", "-m", "second")
    git(work, "worktree", "add", "--quiet", str(top / "wt"), "-b", "side")
    (work / "deeper").mkdir()
    for folder in (work, work / "deeper", top / "wt"):
        assert find_project_root(folder, emit=events.append) == top / "gits" / "work.git"
    assert events == []


def test_a_git_folder_that_was_moved_out_later_is_shared_too(repo: Path, top: Path) -> None:
    (repo / "a.txt").touch()
    git(repo, "add", "a.txt")
    git(repo, "init", "--quiet", f"--separate-git-dir={top / 'out'}")
    git(repo, "worktree", "add", "--quiet", str(top / "wt"), "-b", "side")
    assert find_project_root(repo) == find_project_root(top / "wt") == top / "out"


def test_work_on_the_files_of_a_checkout_does_not_change_its_root(top: Path) -> None:
    work = make_separate(top / "work", top / "elsewhere", "a.txt", "b.txt")
    (work / "a.txt").write_text("changed", encoding="utf-8")
    (work / "b.txt").chmod(0o755)
    assert find_project_root(work) == top / "elsewhere"
    work.rename(top / "moved")
    assert find_project_root(top / "moved") == top / "elsewhere"


@pytest.mark.parametrize("name", ["elsewhere", "gits/.git"])
def test_a_git_folder_that_names_its_checkout_is_believed_in_both_directions(
    top: Path, name: str, events: list[Event]
) -> None:
    (top / "gits").mkdir()
    work = make_separate(top / "work", top / name)
    git(work, "config", "core.worktree", str(work))
    git(work, "worktree", "add", "--quiet", str(top / "wt"), "-b", "side")
    shared = find_project_root(top / "wt", emit=events.append)
    assert find_project_root(work, emit=events.append) == shared == top / name.removesuffix("/.git")
    assert events == []
    thief = hostile(top / "thief", (work / ".git").read_bytes())
    assert find_project_root(thief, emit=events.append) == thief
    assert events == [WorktreeDisowned(str(thief), str(top / name))]


def test_a_nested_repository_is_its_own_root(repo: Path) -> None:
    inner = make_repo(repo / "vendor" / "inner")
    assert find_project_root(inner) == inner


def hostile(place: Path, text: str | bytes) -> Path:
    place.mkdir()
    (place / ".git").write_bytes(text.encode() if isinstance(text, str) else text)
    return place


def test_a_worktree_that_the_repository_does_not_name_is_disowned(
    repo: Path, worktree: Path, top: Path, events: list[Event]
) -> None:
    """A stranger's archive with a `.git` file must not get the memory of the project it points at."""
    thief = hostile(top / "thief", (worktree / ".git").read_bytes())
    assert find_project_root(thief, emit=events.append) == thief
    assert events == [WorktreeDisowned(str(thief), str(repo / ".git"))]
    assert find_project_root(worktree) == repo


def test_a_git_folder_made_to_look_like_a_worktree_is_disowned(
    repo: Path, top: Path, events: list[Event]
) -> None:
    """It brings its own git folder, which names the victim's as its repository and points back properly."""
    thief = hostile(top / "thief", "gitdir: fake\n")
    fake = thief / "fake"
    fake.mkdir()
    (fake / "commondir").write_text(f"{repo / '.git'}\n", encoding="utf-8")
    (fake / "gitdir").write_text(f"{thief / '.git'}\n", encoding="utf-8")
    assert find_project_root(thief, emit=events.append) == thief
    assert [type(event) for event in events] == [WorktreeDisowned]


@pytest.mark.parametrize("planted", ["worktrees/x", "worktrees"])
def test_a_link_that_leads_into_the_victims_worktrees_is_no_way_in(
    repo: Path, worktree: Path, top: Path, planted: str
) -> None:
    thief = hostile(top / "thief", f"gitdir: {planted}\n")
    (thief / "worktrees").symlink_to(repo / ".git" / "worktrees")
    assert find_project_root(thief) == thief


@pytest.mark.parametrize("copied", [True, False])
def test_a_git_file_that_names_anothers_separate_git_folder_is_disowned(
    top: Path, events: list[Event], copied: bool
) -> None:
    """Even with the very same files: a copy is not what git checked out."""
    work = make_separate(top / "work", top / "elsewhere", "a.txt", "deep/b.txt")
    thief = hostile(top / "thief", (work / ".git").read_bytes())
    if copied:
        shutil.copytree(work, thief, dirs_exist_ok=True)
    assert find_project_root(thief, emit=events.append) == thief
    assert events == [WorktreeDisowned(str(thief), str(top / "elsewhere"))]
    assert find_project_root(work) == top / "elsewhere"


def test_links_to_anothers_files_do_not_make_a_checkout(top: Path) -> None:
    work = make_separate(top / "work", top / "elsewhere", "a.txt", "deep/b.txt")
    thief = hostile(top / "thief", (work / ".git").read_bytes())
    for name in ("a.txt", "deep"):
        (thief / name).symlink_to(work / name)
    assert find_project_root(thief) == thief


def test_a_git_file_that_names_anothers_bare_repository_is_disowned(
    repo: Path, top: Path, events: list[Event]
) -> None:
    git(top, "clone", "--quiet", "--bare", str(repo), "bare")
    thief = hostile(top / "thief", "gitdir: ../bare\n")
    assert find_project_root(thief, emit=events.append) == thief
    assert events == [WorktreeDisowned(str(thief), str(top / "bare"))]


def test_a_git_file_that_names_anothers_submodule_makes_no_project_of_it(parent: Path, top: Path) -> None:
    thief = hostile(top / "thief", f"gitdir: {parent}/.git/modules/libs/sub\n")
    assert find_project_root(thief) == thief


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gitdir:",
        "gitdir: \n",
        "gitdir: /nowhere\n",
        "gitdir: .\n",
        "gitdir: ../repo/.git\n",
        "gitdir: ../repo/.git/worktrees/wt\0\n",
        "GITDIR: ../repo/.git\n",
        "worktree: ../repo\n",
        b"gitdir: \xff\xfe\n",
        "gitdir: " + "x/" * 6000,
        "gitdir: " + "x" * 5000,
    ],
    ids=lambda text: ascii(text)[:40],
)
def test_a_git_file_that_points_nowhere_makes_no_project_of_anothers(
    repo: Path, worktree: Path, top: Path, text: str | bytes
) -> None:
    thief = hostile(top / "thief", text)
    assert find_project_root(thief) == thief


def test_nothing_a_repository_holds_is_waited_for(repo: Path, top: Path) -> None:
    thief = hostile(top / "thief", "gitdir: fake\n")
    (thief / "fake").mkdir()
    os.mkfifo(thief / "fake" / "commondir")
    assert find_project_root(thief) == thief
    separate = make_separate(top / "work", top / "elsewhere", "a.txt")
    (top / "elsewhere" / "index").unlink()
    os.mkfifo(top / "elsewhere" / "index")
    assert find_project_root(separate) == top / "elsewhere"
    os.mkfifo(repo / "fifo")
    (top / "other").mkdir()
    os.mkfifo(top / "other" / ".git")
    assert find_project_root(top / "other") == top / "other"


def test_a_path_has_one_name(top: Path) -> None:
    (top / "real").mkdir()
    (top / "link").symlink_to("real")
    for spelled in (f"{top}/link", f"{top}/./real/../link/", f"/{top}/real", f"//{top}/real"):
        assert real_path(Path(spelled)) == top / "real"
    assert str(real_path(Path(f"/{top}/not/there"))) == f"{top}/not/there"
    assert str(real_path(Path("//"))) == "/"


@pytest.mark.parametrize("path", ["a\0b", "\ud800"], ids=ascii)
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(KeyRefused):
        find_project_root(Path(path))


def test_a_current_folder_that_was_removed_is_missing(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (top / "gone").mkdir()
    monkeypatch.chdir(top / "gone")
    (top / "gone").rmdir()
    with pytest.raises(FileMissing):
        find_project_root(Path())


def test_a_folder_that_may_not_be_looked_into_is_an_error_of_ours(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(self: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_dir", denied)
    with pytest.raises(AccessDenied):
        find_project_root(top)


def test_where_names_ignore_case_a_folder_has_the_name_it_was_made_with(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (top / "typed").mkdir()

    def made_name(fd: int, command: int, room: bytes) -> bytes:
        assert len(room) == 1024
        return os.fsencode(top / "Made").ljust(1024, b"\0")

    monkeypatch.setattr(fcntl, "F_GETPATH", 50, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", made_name)
    assert real_path(top / "typed") == top / "Made"
    assert real_path(top / "nothing") == top / "nothing"
