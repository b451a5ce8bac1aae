"""Conditions of memories: what each fires on, and what is refused rather than guessed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.memories import MAX_CONDITIONS, RULE_PHASES, RuleCondition, parse_conditions
from sevenfold.layers.memory.rule_policy import ProposedAction, find_met_condition, is_acknowledged


def fires(text: str, action: ProposedAction) -> bool:
    conditions = parse_conditions([text])
    assert not conditions.refused
    return find_met_condition(conditions.found, action) is not None


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("tool:shell", ProposedAction(tools=("shell",))),
        ("tool:mcp__github__*", ProposedAction(tools=("mcp", "mcp__github__merge"))),
        ("path:src/api/**", ProposedAction(tools=("edit",), paths=("src/api/v1/users.py",))),
        ("path:src/api", ProposedAction(tools=("edit",), paths=("src/api/v1/users.py",))),
        ("path:*.sql", ProposedAction(tools=("read",), paths=("db/migrations/001.sql",))),
        ("path:src/{api,web}/**", ProposedAction(tools=("edit",), paths=("src/web/a.ts",))),
        ("command:git push", ProposedAction(tools=("shell",), command="cd api && git push origin main")),
        ("command:git push*", ProposedAction(tools=("shell",), command="git push")),
        ("command:git push", ProposedAction(tools=("shell",), command="sudo -u ada git push")),
        ("command:git push", ProposedAction(tools=("shell",), command="env -C api X=1 git push")),
        ("command:git push", ProposedAction(tools=("shell",), command="strace -f git push")),
        ("command:git push", ProposedAction(tools=("shell",), command="eval 'git push'")),
        ("command:git push", ProposedAction(tools=("shell",), command='echo "$(git push)"')),
        ("command:git push", ProposedAction(tools=("shell",), command="trap 'git push' EXIT")),
        ("phase:before-commit", ProposedAction(tools=("shell",), command="git commit -am done")),
        ("phase:before-install", ProposedAction(tools=("shell",), command="python3 -m pip install rich")),
        ("phase:before-delete", ProposedAction(tools=("shell",), command="rm -rf build")),
        ("phase:before-edit", ProposedAction(tools=("write",), paths=("a.py",), changes_files=True)),
        ("phase:planning", ProposedAction(tools=("plan",), plans=True)),
    ],
)
def test_a_condition_fires_on_the_action_it_names(text: str, action: ProposedAction) -> None:
    assert fires(text, action)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("tool:shell", ProposedAction(tools=("edit",))),
        ("tool:shell", ProposedAction(tools=("shell_history",))),
        ("path:src/api/**", ProposedAction(tools=("edit",), paths=("src/web/api.py",))),
        ("path:src/api/**", ProposedAction(tools=("shell",))),
        ("path:./setup.py", ProposedAction(tools=("edit",), paths=("tools/setup.py",))),
        ("command:git push", ProposedAction(tools=("shell",), command="git pull")),
        ("command:git push", ProposedAction(tools=("edit",), paths=("git push",))),
        ("phase:before-commit", ProposedAction(tools=("shell",), command="git log --grep commit")),
        ("phase:before-edit", ProposedAction(tools=("read",), paths=("a.py",))),
    ],
)
def test_a_condition_does_not_fire_on_another_action(text: str, action: ProposedAction) -> None:
    assert not fires(text, action)


@pytest.mark.parametrize(
    "text",
    [
        "shell",
        "when pushing",
        "tools:shell",
        "tool:",
        "tool:shell(git push)",
        "path:/etc/passwd",
        "path:~/.ssh/**",
        "path:../other/**",
        "command:git push && rm -rf /",
        "phase:whenever",
        "phase:Before-Commit",
        "path:" + "a" * 500,
        "path:a\nb",
        "",
    ],
)
def test_what_is_no_condition_is_refused_with_what_was_expected(text: str) -> None:
    conditions = parse_conditions([text, "tool:shell"])
    assert conditions.found == (RuleCondition("tool", "shell"),)
    assert len(conditions.refused) == 1
    assert "expected" in conditions.refused[0].reason


def test_more_conditions_than_a_memory_may_have_are_told_and_not_read() -> None:
    conditions = parse_conditions([f"tool:t{number}" for number in range(MAX_CONDITIONS + 3)])
    assert len(conditions.found) == MAX_CONDITIONS
    assert conditions.refused[0].text == "3 more"


@given(st.lists(st.text(max_size=60), max_size=40), st.text(max_size=80))
def test_any_list_is_read_without_failing_and_matched_without_failing(texts: list[str], command: str) -> None:
    conditions = parse_conditions(texts)
    find_met_condition(conditions.found, ProposedAction(tools=("shell",), paths=("a/b",), command=command))
    assert len(conditions.found) + len(conditions.refused) <= min(len(texts), MAX_CONDITIONS) + 1


@given(st.sampled_from([words for commands in RULE_PHASES.values() for words in commands]))
def test_each_command_of_a_phase_is_that_phase(words: str) -> None:
    command = words.replace("*", "3")
    phase = next(name for name, commands in RULE_PHASES.items() if words in commands)
    assert fires(f"phase:{phase}", ProposedAction(tools=("shell",), command=f"{command} something"))


@pytest.mark.parametrize(
    ("phase", "lines"),
    [
        (
            "before-install",
            "yarn;yarn --frozen-lockfile;pnpm i;uv sync;poetry install;apk add git;dnf install -y git;"
            "zypper in git;brew bundle;mise install;asdf install;mix deps.get;nix profile install nixpkgs#jq",
        ),
        ("before-commit", "git revert HEAD;git rebase main;git am < a.patch;gh pr merge 7 --squash"),
        ("before-push", "gh pr merge 7;git push"),
    ],
)
def test_a_phase_knows_its_commands(phase: str, lines: str) -> None:
    for line in lines.split(";"):
        assert fires(f"phase:{phase}", ProposedAction(tools=("shell",), command=line)), line


@pytest.mark.parametrize(
    ("phase", "lines"),
    [
        (
            "before-install",
            "yarn test;yarn run build;yarn --silent test;pnpm run i;uv run x;poetry run x;apk info;dnf list;"
            "pip install --help;yarn --version;yarn -v;npm ci --dry-run",
        ),
        (
            "before-commit",
            "git rebase --abort;git merge --abort;git log revert;git am --quit;gh pr view;git branch am",
        ),
        ("before-push", "gh pr list;gh pr view merge"),
        ("before-delete", "git rm --help;git clean -n;git clean -xdn;git clean --dry-run"),
        ("before-delete", "npm rm lodash;pnpm -C web rm lodash;docker run --rm x ls"),
    ],
)
def test_a_phase_is_not_another_command(phase: str, lines: str) -> None:
    for line in lines.split(";"):
        assert not fires(f"phase:{phase}", ProposedAction(tools=("shell",), command=line)), line


def test_a_memory_is_acknowledged_by_its_name_as_a_word_of_its_own() -> None:
    names = ("release-steps", "release-steps.md", "How we release")
    assert is_acknowledged("As release-steps says, I tag first.", names)
    assert is_acknowledged("I follow “how we release”.", names)
    assert not is_acknowledged("I will now release.", names)
    assert not is_acknowledged("see pre-release-steps-old", names)
    assert not is_acknowledged("anything", ("",))
