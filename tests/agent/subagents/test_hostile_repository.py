"""No program that a stranger's repository names is run, whatever git is asked for and in whatever mode."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sevenfold.agent.subagents.worktree import Worktree, WorktreeOutcome, Worktrees
from sevenfold.cli.inspect.doctor import check_programs
from sevenfold.cli.tour.script import write_sample_repository
from sevenfold.cli.tour.team import TeamDemo
from sevenfold.core.errors import WorktreeError
from sevenfold.core.settings.sections import PERMISSION_MODES, PermissionMode
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.store.files.folder import Folder
from tests.agent.crews import Crew, Lead, said
from tests.agent.subagents.hostile import FILES, Hostile, make_hostile
from tests.store.repos import git, make_repo

AS_EVE = ("-c", "user.name=Eve", "-c", "user.email=eve@example.invalid")


def call(**given: object) -> dict[str, dict[str, object]]:
    return {"agent": {"description": "a task", "prompt": "Do it.", **given}}


def idle(tree: Worktree) -> None:
    """An agent that changes nothing."""


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hostile:
    found = make_hostile(tmp_path)
    for name, value in found.environ.items():
        monkeypatch.setenv(name, value)
    return found


def plain_git(folder: Path, *words: str) -> str:
    """Git as a person runs it, with all that the repository names."""
    kept = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
    done = subprocess.run(["git", *words], cwd=folder, env=kept, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def use(hostile: Hostile, work: Callable[[Worktree], object], *, sweep: bool = False) -> WorktreeOutcome:
    place = hostile.root.parent

    async def run(control: Folder) -> WorktreeOutcome:
        trees = Worktrees(hostile.root, place / "trees", control)
        async with trees.make("ada") as end:
            work(end.tree)
        if sweep:
            await trees.sweep()
        return end

    with Folder.open(place / "control", create=True) as control:
        return asyncio.run(run(control))


def test_the_drivers_are_live_where_a_person_runs_git(hostile: Hostile) -> None:
    plain_git(hostile.root, "worktree", "add", "-b", "sevenfold/eve", str(hostile.root.parent / "eve"))
    smudges = {"filter.any.smudge", "filter.a=b.c.smudge", "included.smudge", "user.smudge"}
    hidden = {"on-branch.smudge", "in-folder.smudge", "config.worktree.smudge"}
    others = {"filter.stream.process", "more-hooks-reference-transaction", "more-hooks-post-checkout"}
    assert smudges | hidden | others <= set(hostile.ran)


def change(tree: Worktree) -> None:
    (tree.path / "a.txt").write_text("changed\n")


def touch(tree: Worktree) -> None:
    """Other times and the same content: git has to read the file, through its clean filter."""
    for name in FILES:
        os.utime(tree.path / name, (1, 1))


@pytest.mark.parametrize("work", [idle, change, touch])
def test_a_worktree_runs_no_driver_when_it_is_made_shown_swept_and_removed(
    hostile: Hostile, work: Callable[[Worktree], object]
) -> None:
    end = use(hostile, work, sweep=True)
    assert hostile.ran == []
    assert bool(end.kept) is (work is change)
    assert end.tree.path.exists() is (work is change)


def test_files_are_checked_out_as_they_are_stored(hostile: Hostile) -> None:
    seen: list[str] = []
    use(hostile, lambda tree: seen.extend((tree.path / name).read_text() for name in FILES))
    assert seen == [f"{name}\n" for name in FILES]
    assert hostile.ran == []


def test_a_repository_that_an_agent_puts_in_place_of_a_submodule_is_not_asked(hostile: Hostile) -> None:
    def put(tree: Worktree) -> None:
        plain_git(tree.path / "sub", "init", "--quiet")
        plain_git(tree.path / "sub", *AS_EVE, "commit", "--quiet", "--allow-empty", "-m", "inner")
        (tree.path / "sub" / "x").write_text("x")
        plain_git(tree.path / "sub", "add", "x")
        os.utime(tree.path / "sub" / "x", (1, 1))
        hostile.arm(tree.path / "sub" / ".git" / "config", prefix="sub.")
        (tree.path / "sub" / ".git" / "info").mkdir(exist_ok=True)
        (tree.path / "sub" / ".git" / "info" / "attributes").write_text("* filter=any\n")

    end = use(hostile, put)
    assert hostile.ran == []
    assert end.kept
    assert (end.tree.path / "sub" / "x").read_text() == "x"


def test_a_git_file_that_an_agent_redirects_is_not_followed(hostile: Hostile) -> None:
    def redirect(tree: Worktree) -> None:
        evil = tree.path / "evil"
        plain_git(tree.path, "-C", str(hostile.root.parent), "init", "--quiet", str(evil))
        hostile.arm(evil / ".git" / "config", prefix="evil.")
        (tree.path / ".git").write_text(f"gitdir: {evil / '.git'}\n")

    end = use(hostile, redirect)
    assert hostile.ran == []
    assert end.kept


def point(root: Path, theirs: Path) -> None:
    (root / ".git").write_text(f"gitdir: {theirs}\n")


def link(root: Path, theirs: Path) -> None:
    (root / ".git").symlink_to(theirs)


def share(root: Path, theirs: Path) -> None:
    plain_git(root, "init", "--quiet", "-b", "main")
    (root / ".git" / "commondir").write_text(f"{theirs}\n")


def link_parts(root: Path, theirs: Path) -> None:
    plain_git(root, "init", "--quiet", "-b", "main")
    for name in ("objects", "refs"):
        shutil.rmtree(root / ".git" / name)
        (root / ".git" / name).symlink_to(theirs / name)


def link_packs(root: Path, theirs: Path) -> None:
    plain_git(root, "init", "--quiet", "-b", "main")
    (root / ".git" / "objects" / "pack").rmdir()
    (root / ".git" / "objects" / "pack").symlink_to(theirs / "objects" / "pack")
    (root / ".git" / "refs" / "heads" / "main").symlink_to(theirs / "refs" / "heads" / "main")


def link_branch(root: Path, theirs: Path) -> None:
    plain_git(root, "init", "--quiet", "-b", "main")
    (root / ".git" / "objects" / "info" / "alternates").write_text(f"{theirs / 'objects'}\n")
    (root / ".git" / "refs" / "heads" / "main").symlink_to(theirs / "refs" / "heads" / "main")


def be_bare(root: Path, theirs: Path) -> None:
    for name in ("HEAD", "objects", "refs"):
        (root / name).symlink_to(theirs / name)


@pytest.mark.parametrize("plant", [point, link, share, link_parts, link_packs, link_branch, be_bare])
def test_no_worktree_is_made_of_a_repository_that_a_project_merely_leads_to(
    tmp_path: Path, plant: Callable[[Path, Path], None]
) -> None:
    theirs = make_repo(tmp_path / "theirs")
    (theirs / "private").write_text("theirs\n")
    git(theirs, "add", ".")
    git(theirs, "commit", "--quiet", "-m", "second")
    git(theirs, "repack", "-adq")
    root = tmp_path / "root"
    root.mkdir()
    plant(root, theirs / ".git")
    with pytest.raises(WorktreeError, match="no worktree was made"):
        use(Hostile(root, tmp_path, tmp_path), idle)
    assert not (tmp_path / "trees" / "ada").exists()
    assert git(theirs, "for-each-ref", "--format=%(refname)").split() == ["refs/heads/main"]
    assert not (theirs / ".git" / "worktrees").exists()


def lend_objects(root: Path, theirs: Path) -> None:
    plain_git(root, "init", "--quiet", "-b", "main")
    (root / ".git" / "objects" / "info" / "alternates").write_text(f"{theirs / 'objects'}\n")
    (root / ".git" / "refs" / "heads" / "main").write_text(git(theirs.parent, "rev-parse", "HEAD"))


def link_one_object(root: Path, theirs: Path) -> None:
    make_repo(root / "new").joinpath(".git").rename(root / ".git")
    blob = git(theirs.parent, "rev-parse", "HEAD:private").strip()
    (root / ".git" / "objects" / blob[:2]).mkdir(exist_ok=True)
    (root / ".git" / "objects" / blob[:2] / blob[2:]).symlink_to(theirs / "objects" / blob[:2] / blob[2:])


def link_boundary(root: Path, theirs: Path) -> None:
    make_repo(root / "new").joinpath(".git").rename(root / ".git")
    (root / ".git" / "shallow").symlink_to(theirs.parent / "private")


def put_pipe(root: Path, theirs: Path) -> None:
    make_repo(root / "new").joinpath(".git").rename(root / ".git")
    os.mkfifo(root / ".git" / "refs" / "heads" / "pipe")


@pytest.mark.parametrize("plant", [lend_objects, link_one_object, link_boundary, put_pipe])
def test_no_file_of_another_repository_is_read_or_told_through_parts_of_this_one(
    tmp_path: Path, plant: Callable[[Path, Path], None]
) -> None:
    theirs = make_repo(tmp_path / "theirs")
    (theirs / "private").write_text("only theirs\n")
    git(theirs, "add", ".")
    git(theirs, "commit", "--quiet", "-m", "second")
    root = tmp_path / "root"
    root.mkdir()
    plant(root, theirs / ".git")
    with pytest.raises(WorktreeError, match="elsewhere") as caught:
        use(Hostile(root, tmp_path, tmp_path), idle)
    assert "only theirs" not in str(caught.value)
    assert not (tmp_path / "trees" / "ada").exists()


def test_a_pipe_in_place_of_the_ignored_names_is_not_waited_for(hostile: Hostile) -> None:
    exclude = hostile.root / ".git" / "info" / "exclude"
    exclude.unlink(missing_ok=True)
    os.mkfifo(exclude)
    assert use(hostile, idle).kept == ""


def test_no_file_is_deleted_or_changed_where_the_log_of_a_branch_leads(hostile: Hostile) -> None:
    outside = hostile.root.parent / "outside"
    outside.mkdir()
    (outside / "ada").write_text("mine\n")
    (hostile.root / ".git" / "logs" / "refs" / "heads" / "sevenfold").symlink_to(outside)
    assert use(hostile, idle).kept == ""
    assert (outside / "ada").read_text() == "mine\n"


def test_a_missing_file_of_a_partial_clone_is_not_fetched(hostile: Hostile) -> None:
    blob = plain_git(hostile.root, "rev-parse", "HEAD:a.txt").strip()
    config = hostile.root / ".git" / "config"
    program = hostile.program("remote.promisor")
    with config.open("a") as file:
        file.write(f'[remote "far"]\n\turl = {hostile.root}\n\tuploadpack = {program}\n\tpromisor = true\n')
        file.write("[extensions]\n\tpartialClone = far\n")
    (hostile.root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(WorktreeError, match="partial clone"):
        use(hostile, idle)
    assert hostile.ran == []
    assert not (hostile.root.parent / "trees" / "ada").exists()


def test_the_repositories_of_the_tour_are_made_without_any_driver(hostile: Hostile, tmp_path: Path) -> None:
    write_sample_repository(tmp_path / "tour")
    TeamDemo(tmp_path / "office", {}).open()
    assert hostile.ran == []
    assert (tmp_path / "tour" / ".git" / "HEAD").exists()
    assert not (tmp_path / "tour" / ".git" / "hooks" / "post-checkout").exists()
    assert len(list((tmp_path / "office").glob("**/.git/HEAD"))) == 3


def test_the_doctor_asks_git_for_its_version_without_any_driver(
    hostile: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(hostile.root)
    found = [finding for finding in check_programs(os.environ) if finding.area == "git"]
    assert "git version" in found[0].said
    assert hostile.ran == []


@pytest.mark.story
@pytest.mark.parametrize("mode", PERMISSION_MODES)
def test_an_agent_in_a_worktree_runs_no_driver_in_any_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: PermissionMode
) -> None:
    hostile = make_hostile(tmp_path)
    hostile.root.rename(tmp_path / "project")
    for name, value in hostile.environ.items():
        if name not in ("GIT_DIR", "GIT_WORK_TREE"):
            monkeypatch.setenv(name, value)
    answers = [make_response(calls=call(name="ada", worktree=True)), make_response("Done.")]
    with ScriptedProvider(answers, by_purpose={"agent": lambda _: make_response("looked")}) as models:
        crew = Crew(home=tmp_path, provider=models, mode=mode)

        async def tell() -> None:
            async with crew.lead() as lead:
                await turn(lead)

        asyncio.run(tell())
    assert hostile.ran == []
    assert bool(crew.children) is (mode not in ("read-only", "plan"))
    if not crew.children:
        heard = said(models.requests[1].messages)
        assert f"no worktree is made in {mode} mode" in heard
        assert "without worktree" in heard
        assert not (tmp_path / "project" / ".git" / "worktrees").exists()


async def turn(lead: Lead) -> None:
    await lead.agent.run_turn("Go.")
