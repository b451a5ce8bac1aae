"""Files that instruct agents or run later are asked for where edits are accepted, and nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sevenfold.agent.permissions.guard import Guard
from sevenfold.agent.permissions.rules import PermissionRules, parse_permission_rules
from sevenfold.agent.sandbox.folders import list_guarded_names
from sevenfold.agent.sandbox.guarded_files import GUARDED_FILES
from sevenfold.agent.tool import AccessRequest
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import ToolUse, ToolUseId
from sevenfold.core.settings.sections import PermissionMode

NAMES = [name for group in GUARDED_FILES for name in group.names]
ORDINARY = (
    *("README.md", "src/app.py", "tests/conftest.py", "conftest.py", "Makefile", "package.json", "setup.py"),
    *("pyproject.toml", "Dockerfile", ".gitignore", ".editorconfig", ".env", "docs/claude.txt", "model.pth"),
    *(".github/ISSUE_TEMPLATE/bug.md", ".github/CODEOWNERS", ".config/app.toml", "src/github/workflows.py"),
    *(".yarn/cache/a.zip", "agents/main.py", "mycargo/config.toml", ".venv/lib/a.py", "notes~.md", "a~b.txt"),
    *("a~1.md", "notes~1.md", "README~1.MD", "src/main~1.py", "data~1", "agents~1.txt", "abcdef~1/x"),
)


def decide(root: Path, path: str, mode: PermissionMode = "accept-edits", allow: tuple[str, ...] = ()) -> str:
    rules = parse_permission_rules(allow=allow) if allow else PermissionRules()
    guard = Guard(mode=mode, rules=rules, root=root, home=root.parent / "home", user_home=root.parent)
    use = ToolUse(ToolUseId("1"), "edit", JsonObject())
    return guard.decide(use, AccessRequest(kind="edit", paths=(f"{root}/{path}",))).decision


def example(name: str) -> str:
    """A file that a name of the table matches."""
    return (f"{name}x.md" if name.endswith("/") else name).replace("*", "any")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "project"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_each_name_of_the_table_is_asked_for_wherever_and_however_it_is_written(
    root: Path, name: str
) -> None:
    path = example(name)
    for spelled in (path, f"deep/er/{path}", path.upper(), path.capitalize(), f"{path} ", f"{path}."):
        assert decide(root, spelled) == "ask", spelled
    assert decide(root, path, allow=("edit",)) == "ask", "no rule covers it"
    assert decide(root, path, "bypass") == "allow"
    assert decide(root, path, "plan") == decide(root, path, "read-only") == "deny"


@pytest.mark.parametrize(
    "path",
    [
        *("AGENTS\ufe0f.md", "AGENTS\u034f.md", "AGEN\u3164TS.md", "AGENTS\U000e0101.md", ".g\u0131t/config"),
        *("CLAUDE~1.MD", "VSCODE~1/tasks.json", "GITHUB~1/workflows/x.yml", "src/AGENTS~2.MD"),
    ],
)
def test_a_name_is_asked_for_that_some_disk_takes_for_one_of_the_table(root: Path, path: str) -> None:
    assert decide(root, path) == "ask"


def short_name(part: str) -> str:
    """The second name of a part, as Windows makes it."""
    stem, dot, extension = part.replace("*", "any").lstrip(".").rpartition(".")
    stem, extension = (stem, extension) if dot else (extension, "")
    return f"{stem.replace('.', '')[:6]}~1{dot}{extension[:3]}".upper()


@pytest.mark.parametrize("name", NAMES)
def test_the_short_name_of_each_part_of_the_table_is_asked_for(root: Path, name: str) -> None:
    for part in name.rstrip("/").split("/"):
        assert decide(root, short_name(part)) == "ask", part
        assert decide(root, f"deep/{short_name(part)}/x") == "ask", part


@pytest.mark.parametrize("path", ["SEVENF~1/x", ".sevenfold/SETTIN~1.TOM", "SSH~1/config", "GI7EBA~1/config"])
def test_short_names_of_rules_keys_and_repositories_are_asked_for(root: Path, path: str) -> None:
    assert decide(root, path) == "ask"


def test_a_name_that_its_folder_does_not_list_is_asked_for(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "PRIVAT~1").mkdir()
    assert decide(root, "privat~1/notes.md") == decide(root, "PRIVAT~1/notes.md") == "allow"

    def list_long_names(_folder: Path) -> list[str]:
        return ["private notes"]

    monkeypatch.setattr(os, "listdir", list_long_names)
    assert decide(root, "PRIVAT~1/notes.md") == "ask"
    assert decide(root / "PRIVAT~1", "notes.md") == "allow", "the project itself may lie there"


def test_a_harmless_name_of_that_form_may_be_made_at_the_top_of_a_project(root: Path) -> None:
    for name in ("a~1.md", "CLAUDE~1.MD"):
        (root / name).write_text("x")
    assert list_guarded_names(root) == {"CLAUDE~1.MD"}


@pytest.mark.parametrize("path", ORDINARY)
def test_ordinary_files_are_edited_unasked_where_edits_are_accepted(root: Path, path: str) -> None:
    assert decide(root, path) == "allow"


def test_names_of_the_table_are_folded_and_listed_once() -> None:
    assert [name for name in NAMES if name != name.casefold()] == []
    assert len(NAMES) == len(set(NAMES))


@pytest.mark.parametrize(
    "path",
    [
        *("AGENTS.md", "CLAUDE.md", "CLAUDE.local.md", ".claude/notes.md", ".cargo/config.toml"),
        *(".pre-commit-config.yaml", "sitecustomize.py", ".github/workflows/ci.yml", ".gitlab-ci.yml"),
        *(
            ".git/hooks/pre-commit",
            ".envrc",
            ".vscode/tasks.json",
            ".husky/pre-push",
            ".npmrc",
            ".gitattributes",
        ),
        *(".gitmodules", "mise.toml", ".devcontainer/devcontainer.json", ".circleci/config.yml", "GEMINI.md"),
        *(".cursor/rules/a.mdc", ".github/copilot-instructions.md"),
        *("flake.nix", "Directory.Build.targets", ".venv/bin/activate", ".pnp.cjs", "renovate.json"),
        *(".gitlab/duo/chat-rules.md", "app.sublime-project", ".renovaterc.json", ".github/dependabot.yml"),
    ],
)
def test_these_are_in_the_table(root: Path, path: str) -> None:
    assert decide(root, path) == "ask"


def test_a_link_is_asked_for_by_its_own_name_and_by_what_it_leads_to(root: Path) -> None:
    (root / "docs").mkdir()
    (root / "docs/guide.md").write_text("x")
    (root / "AGENTS.md").symlink_to("docs/guide.md")
    (root / "shared").mkdir()
    (root / ".claude").symlink_to("shared")
    (root / "plain").symlink_to("docs")
    assert decide(root, "AGENTS.md") == "ask"
    assert decide(root, "docs/guide.md") == "ask", "an edit there changes AGENTS.md"
    assert decide(root, "shared/new.md") == "ask", "an edit there is one in .claude"
    assert decide(root, "plain/other.md") == "allow"
    (root / "innocent.txt").symlink_to(".mcp.json")
    assert decide(root, "innocent.txt") == "ask", "it leads to a file that is obeyed"


def test_a_held_command_may_not_change_them_at_the_top_of_the_project(root: Path) -> None:
    for name in (
        "AGENTS.md",
        "src",
        ".github",
        ".yarn",
        ".config",
        "sitecustomize.py",
        ".cargo",
        "README.md",
    ):
        (root / name).touch()
    assert list_guarded_names(root) == {"AGENTS.md", ".github", "sitecustomize.py", ".cargo"}
