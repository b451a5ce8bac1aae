"""Each mode allows what it says, rules are heard strongest first, and a link changes nothing."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sevenfold.agent.permissions.guard import (
    ForkGuard,
    Guard,
    PermissionRequest,
    PermissionResponse,
    PermissionVerdict,
    Reach,
)
from sevenfold.agent.permissions.rules import PermissionRule, PermissionRules, parse_permission_rules
from sevenfold.agent.tool import AccessRequest
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import ToolUse, ToolUseId
from sevenfold.core.settings.sections import PERMISSION_MODES, PermissionMode


@dataclass(slots=True)
class Person:
    answer: PermissionResponse = field(default_factory=lambda: PermissionResponse(True))
    asked: list[PermissionRequest] = field(default_factory=list[PermissionRequest])

    async def ask(self, question: PermissionRequest) -> PermissionResponse:
        self.asked.append(question)
        await asyncio.sleep(0)
        return self.answer


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def use(tool: str) -> ToolUse:
    return ToolUse(ToolUseId("toolu_1"), tool, JsonObject())


def guard(root: Path, mode: PermissionMode = "ask", rules: PermissionRules | None = None) -> Guard:
    return Guard(mode=mode, rules=rules or PermissionRules(), root=root, user_home=root.parent / "user")


def admit(at: Guard | ForkGuard, tool: str, *needs: AccessRequest) -> list[PermissionVerdict]:
    """What comes of calls made at the same time."""

    async def all_at_once() -> list[PermissionVerdict]:
        return await asyncio.gather(*(at.admit(use(tool), need) for need in needs))

    return asyncio.run(all_at_once())


def edit(path: Path | str) -> AccessRequest:
    return AccessRequest(kind="edit", paths=(str(path),))


def read(path: Path | str) -> AccessRequest:
    return AccessRequest(kind="read", paths=(str(path),))


def fetch(url: str) -> AccessRequest:
    return AccessRequest(kind="fetch", url=url)


def run(command: str) -> AccessRequest:
    return AccessRequest(kind="run", command=command)


TABLE = {
    "nothing": ("allow", "allow", "allow", "allow", "allow"),
    "read inside": ("allow", "allow", "allow", "allow", "allow"),
    "read outside": ("ask", "ask", "ask", "ask", "allow"),
    "read key": ("ask", "ask", "ask", "ask", "allow"),
    "edit inside": ("ask", "allow", "deny", "deny", "allow"),
    "edit outside": ("ask", "ask", "deny", "deny", "allow"),
    "edit hook": ("ask", "ask", "deny", "deny", "allow"),
    "run held": ("allow", "allow", "allow", "allow", "allow"),
    "run in project": ("ask", "allow", "deny", "deny", "allow"),
    "run open": ("ask", "ask", "deny", "deny", "allow"),
    "fetch": ("ask", "ask", "ask", "ask", "allow"),
    "message": ("allow", "allow", "allow", "deny", "allow"),
    "spawn": ("allow", "allow", "allow", "allow", "allow"),
    "outside": ("ask", "ask", "ask", "deny", "allow"),
}


@pytest.mark.parametrize("what", TABLE)
def test_a_mode_decides(what: str, root: Path) -> None:
    need = {
        "nothing": AccessRequest(kind="nothing"),
        "read inside": read(root / "a.py"),
        "read outside": read("/etc/hostname"),
        "read key": read(root / ".ssh/id_ed25519"),
        "edit inside": edit(root / "a.py"),
        "edit outside": edit(root.parent / "b.py"),
        "edit hook": edit(root / ".git/hooks/pre-commit"),
        "run held": AccessRequest(kind="run", command="ls", profile="read-only"),
        "run in project": AccessRequest(kind="run", command="make", profile="workspace"),
        "run open": AccessRequest(kind="run", command="make"),
        "fetch": fetch("https://example.org/"),
        "message": AccessRequest(kind="message"),
        "spawn": AccessRequest(kind="spawn"),
        "outside": AccessRequest(kind="outside"),
    }[what]
    decided = tuple(guard(root, mode).decide(use("tool"), need).decision for mode in PERMISSION_MODES)
    assert decided == TABLE[what]


@pytest.mark.parametrize("mode", PERMISSION_MODES)
def test_a_rule_that_denies_holds_in_every_mode(mode: PermissionMode, root: Path) -> None:
    rules = parse_permission_rules(allow=["edit"], deny=["edit(secret/**)"])
    verdict = guard(root, mode, rules).decide(use("write"), edit(root / "secret/a"))
    assert verdict.decision == "deny"
    if mode not in ("plan", "read-only"):
        assert "edit(secret/**)" in verdict.reason


def test_deny_is_stronger_than_ask_and_ask_is_stronger_than_allow(root: Path) -> None:
    rules = parse_permission_rules(
        allow=["shell(git)"], ask=["shell(git push)"], deny=["shell(git push --force)"]
    )
    decide = guard(root, "ask", rules).decide
    assert decide(use("shell"), run("git status")).decision == "allow"
    assert decide(use("shell"), run("git push")).decision == "ask"
    assert decide(use("shell"), run("git push --force")).decision == "deny"
    assert guard(root, "bypass", rules).decide(use("shell"), run("git push")).decision == "ask"


def test_a_rule_that_asks_leaves_the_warning_of_the_guard_in_place(root: Path) -> None:
    """A repository may bring the rule: the question must say no less for it."""
    at = guard(root, "ask", parse_permission_rules(ask=["edit", "read"]))
    for need in (edit(root / ".git/hooks/pre-commit"), read("/etc/hosts")):
        plain = guard(root, "ask").decide(use(need.kind), need).reason
        assert at.decide(use(need.kind), need).reason == f"{plain}; the rule {need.kind} asks for it"


@pytest.mark.parametrize(
    "command",
    [
        "git status; rm -rf .",
        "git status && rm x",
        "git status | sh",
        "git status $(rm x)",
        "git status `rm x`",
        "git status\nrm x",
        "git status > x",
        "git statusx",
        "git -c core.pager=x status",
        "/tmp/git status",
        "GIT_DIR=x git status",
    ],
)
def test_a_command_is_not_allowed_by_how_it_begins_where_more_can_follow(command: str, root: Path) -> None:
    rules = parse_permission_rules(allow=["shell(git status)"])
    assert guard(root, "ask", rules).decide(use("shell"), run(command)).decision == "ask"


@pytest.mark.parametrize(
    "command",
    ["rm x", "ls; rm x", "sudo rm x", "/bin/rm x", "\\rm x", "'rm' x", "r''m x", "echo $(rm x)", "x=1 rm x"],
)
def test_a_command_is_denied_wherever_it_stands(command: str, root: Path) -> None:
    rules = parse_permission_rules(deny=["shell(rm *)"])
    assert guard(root, "bypass", rules).decide(use("shell"), run(command)).decision == "deny"


def test_hosts_are_allowed_exactly_and_denied_with_all_below_them(root: Path) -> None:
    rules = parse_permission_rules(
        allow=["web_fetch(domain:example.org)", "web_fetch(*.docs.org)"], deny=["web_fetch(bad.org)"]
    )
    decide = guard(root, "ask", rules).decide
    for url, decision in {
        "https://example.org/x": "allow",
        "https://EXAMPLE.org./x": "allow",
        "https://a.example.org/": "ask",
        "https://example.org.bad.net/": "ask",
        "https://example.org@bad.net/": "ask",
        "https://a.docs.org/": "allow",
        "https://bad.org/": "deny",
        "https://a.bad.org/": "deny",
        "https://[::bad/": "deny",
    }.items():
        assert decide(use("web_fetch"), fetch(url)).decision == decision, url


@pytest.mark.parametrize(
    ("pattern", "path", "is_covered"),
    [
        ("src/**", "src/a/b.py", True),
        ("src", "src/a/b.py", True),
        ("src/", "src/a/b.py", True),
        ("*.md", "docs/a.md", True),
        ("./a.md", "a.md", True),
        ("./a.md", "docs/a.md", False),
        ("*.{md,txt}", "a.txt", True),
        ("src/**", "SRC/a.py", False),
        ("src/**", "../src/a.py", False),
        ("src/**", "srcx/a.py", False),
        ("~/notes/**", "../user/notes/a", True),
    ],
)
def test_a_path_is_allowed_by_its_pattern(pattern: str, path: str, is_covered: bool, root: Path) -> None:
    rules = parse_permission_rules(allow=[f"edit({pattern})"])
    decision = guard(root, "ask", rules).decide(use("edit"), edit(root / path)).decision
    assert (decision == "allow") is is_covered


@pytest.mark.parametrize("path", [".ENV", ".env", "x/.Env", ".env.", ".e\u200bnv", "．env", "./x/../.env"])
def test_a_path_is_denied_by_whatever_it_could_be_taken_for(path: str, root: Path) -> None:
    rules = parse_permission_rules(deny=["read(.env)"])
    assert guard(root, "bypass", rules).decide(use("read"), read(f"{root}/{path}")).decision == "deny"
    assert guard(root, "bypass", rules).is_hidden(f"{root}/.env")


def test_a_link_is_judged_by_where_it_leads(root: Path) -> None:
    (root / "link").symlink_to("/etc")
    (root / "hook").symlink_to(root / ".git/hooks/pre-commit")
    at = guard(root, "accept-edits")
    assert at.decide(use("read"), read(root / "link/hostname")).decision == "ask"
    verdict = at.decide(use("edit"), edit(root / "hook"))
    assert (verdict.decision, verdict.paths) == ("ask", (str(root / ".git/hooks/pre-commit"),))


def test_what_lies_beside_the_project_may_be_in_reach(root: Path) -> None:
    home = root.parent / "home"
    at = guard(root)
    at.home, at.reach = home, Reach(read=(home / "spills",), edit=(home / "memory",))
    assert at.decide(use("read"), read(home / "spills/a.txt")).decision == "allow"
    assert at.decide(use("memory"), edit(home / "memory/a.md")).decision == "allow"
    assert at.decide(use("edit"), edit(home / "spills/a.txt")).decision == "ask"
    at.mode = "accept-edits"
    assert "own files" in at.decide(use("edit"), edit(home / "settings.toml")).reason


def test_folders_that_are_reached_by_a_link_count_as_what_they_lead_to(root: Path) -> None:
    real, link = root.parent / "real", root.parent / "link"
    for name in ("home/memory", "project"):
        (real / name).mkdir(parents=True)
    link.symlink_to(real)
    at = Guard(mode="accept-edits", rules=PermissionRules(), root=link / "project", home=link / "home")
    at.reach = Reach(edit=(link / "home/memory",))
    decided = {
        name: at.decide(use("edit"), edit(link / name)).decision
        for name in ("project/a.py", "home/memory/a.md", "home/settings.toml")
    }
    assert list(decided.values()) == ["allow", "allow", "ask"]
    assert at.decide(use("edit"), edit(real / "home/settings.toml")).decision == "ask"


def test_a_person_is_asked_and_a_no_answers_the_model(root: Path) -> None:
    person = Person(PermissionResponse(False, words="use the other file"))
    at = guard(root)
    at.ask = person.ask
    [verdict] = admit(at, "edit", edit(root / "a"))
    assert verdict.decision == "deny"
    assert "use the other file" in verdict.reason
    assert person.asked[0].rule == PermissionRule("edit", "./a")


def test_an_answer_for_the_session_is_not_asked_again(root: Path) -> None:
    person = Person(PermissionResponse(True, "session"))
    at = guard(root)
    at.ask = person.ask
    needs = [run("make test"), run("make test"), run("make test -k")]
    verdicts = admit(at, "shell", *needs)
    assert [verdict.decision for verdict in verdicts] == ["allow"] * 3
    assert len(person.asked) == 1


def test_an_answer_for_always_is_kept(root: Path) -> None:
    kept: list[PermissionRule] = []

    async def keep(rule: PermissionRule) -> None:
        kept.append(rule)

    at = guard(root)
    at.ask, at.save_rule = Person(PermissionResponse(True, "always")).ask, keep
    admit(at, "web_fetch", fetch("https://example.org/a"))
    admit(at, "read", read("/etc/hosts"))
    assert list(map(str, kept)) == ["web_fetch(example.org)", "read(/etc/**)"]
    assert at.decide(use("read"), read("/etc/hostname")).decision == "allow"


def test_a_guarded_file_is_asked_for_every_time(root: Path) -> None:
    person = Person(PermissionResponse(True, "always"))
    at = guard(root, "accept-edits", parse_permission_rules(allow=["edit"]))
    at.ask = person.ask
    for _ in range(2):
        assert admit(at, "edit", edit(root / ".bashrc"))[0].decision == "allow"
    assert [question.rule for question in person.asked] == [None, None]


@pytest.mark.parametrize(
    "path",
    [
        *(".git/config", ".GIT/hooks/x", "sub/.git/hooks/post-checkout", ".g\u200cit/config", "git~1/config"),
        *(".sevenfold/settings.toml", ".sevenfold/settings.local.toml", ".sevenfold/skills/a/SKILL.md"),
        *(".claude/settings.json", ".claude/settings.local.json", ".claude/agents/a.md", ".zshrc"),
        *(".ssh/authorized_keys", ".vscode/tasks.json", ".mcp.json", ".envrc", ".config/fish/config.fish"),
    ],
)
def test_what_is_obeyed_later_is_asked_for_even_when_edits_are_accepted(path: str, root: Path) -> None:
    assert guard(root, "accept-edits").decide(use("edit"), edit(f"{root}/{path}")).decision == "ask"


def test_nobody_there_means_no(root: Path) -> None:
    [verdict] = admit(guard(root), "edit", edit(root / "a"))
    assert (verdict.decision, "nobody" in verdict.reason) == ("deny", True)


def test_a_fork_reads_its_roots_and_edits_one_folder(root: Path) -> None:
    memory = root.parent / "memory"
    memory.mkdir()
    (memory / "out").symlink_to(root)
    needs = {
        "read": read(root / "a"),
        "read memory": read(memory / "a.md"),
        "read elsewhere": read("/etc/hostname"),
        "edit memory": edit(memory / "a.md"),
        "edit the folder": edit(memory),
        "edit a sibling": edit(f"{memory}_evil/a.md"),
        "edit by a link": edit(memory / "out/a"),
        "edit the project": edit(root / "a"),
        "run": run("ls"),
        "run held": AccessRequest(kind="run", profile="read-only"),
        "fetch": fetch("https://example.org"),
        "spawn": AccessRequest(kind="spawn"),
        "todo": AccessRequest(kind="nothing"),
        "no path": AccessRequest(kind="edit"),
    }
    verdicts = admit(ForkGuard(Reach(read=(root,), edit=(memory,))), "tool", *needs.values())
    allowed = {name for name, verdict in zip(needs, verdicts, strict=True) if verdict.decision == "allow"}
    assert allowed == {"read", "read memory", "edit memory", "run held", "todo"}
