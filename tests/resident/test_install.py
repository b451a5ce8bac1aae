"""`sevenfold install`: what it adds to other agents' configurations, and that all of it goes again."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import yaml

from sevenfold.cli import install, main
from sevenfold.resident.agent_configs import HOOK_SCRIPT, INSTALLABLE_AGENTS, is_own_command

HOOKS = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./guard.sh"}]}]}

CONFIGS: dict[str, dict[str, str]] = {
    "claude-code": {
        ".claude/settings.json": json.dumps({"model": "opus", "hooks": HOOKS}, indent=4),
        ".claude.json": '{"numStartups": 3, "mcpServers": {"other": {"command": "x"}}}',
    },
    "codex": {
        ".codex/hooks.json": json.dumps({"hooks": HOOKS}, indent="\t") + "\n",
        ".codex/config.toml": 'model = "gpt-5.5"\n\n[mcp_servers.other]\ncommand = "x"',
    },
    "opencode": {".config/opencode/opencode.json": '{\n  "mcp": {\n    "other": {"type": "local"}\n  }\n}'},
    "goose": {
        ".config/goose/config.yaml": "MODEL: x # mine\nextensions:\n  other:\n    enabled: true\nlast: 1\n"
    },
    "continue": {".continue/config.yaml": "name: mine\nmcpServers:\n- name: other\n  command: x\nmodels: []"},
    "cursor": {".cursor/mcp.json": '{"mcpServers": {"other": {"command": "x"}}}\n'},
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("SEVENFOLD_HOME", str(tmp_path / "own"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "CONTINUE_GLOBAL_DIR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "user").mkdir()
    return tmp_path / "user"


def read_tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def list_folders(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_dir()}


def write_configs(home: Path, agent: str) -> None:
    for name, text in CONFIGS[agent].items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def parse(path: Path) -> object:
    text = path.read_text()
    if path.suffix == ".toml":
        return tomllib.loads(text)
    return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)


@pytest.mark.parametrize("agent", INSTALLABLE_AGENTS)
@pytest.mark.parametrize("has_configs", [False, True])
def test_uninstalling_leaves_every_file_as_it_was(
    home: Path, agent: str, has_configs: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    if has_configs:
        write_configs(home, agent)
    before, folders = read_tree(home), list_folders(home)

    assert main(["install", agent, "--dry-run"]) == 0
    assert read_tree(home) == before
    assert "+++ " in capsys.readouterr().out

    assert main(["install", agent]) == 0
    after = read_tree(home)
    assert after != before
    for name in after:
        if not name.endswith(".md"):
            text = str(parse(home / name))
            assert "mcp" in text or "hook_script.py" in text
            assert not has_configs or "other" in text or "guard.sh" in text
    assert main(["install", agent]) == 0
    assert read_tree(home) == after
    assert "nothing to change" in capsys.readouterr().out

    assert main(["install", agent, "--uninstall"]) == 0
    assert read_tree(home) == before
    assert list_folders(home) == folders


@pytest.mark.parametrize("agent", INSTALLABLE_AGENTS)
def test_of_a_file_that_was_edited_meanwhile_only_our_entries_go(home: Path, agent: str) -> None:
    write_configs(home, agent)
    parsed = {name: parse(home / name) for name in CONFIGS[agent]}
    assert main(["install", agent]) == 0
    for name in CONFIGS[agent]:
        path = home / name
        text = path.read_text()
        is_json = path.suffix == ".json"
        path.write_text(
            text.replace("{", '{ "added": 1,', 1)
            if is_json
            else f"added = 1\n{text}".replace(
                "added = 1", "added = 1" if path.suffix == ".toml" else "added: 1"
            )
        )
    assert main(["install", agent]) == 0  # once more in between
    assert main(["install", agent, "--uninstall"]) == 0
    for name, value in parsed.items():
        found = parse(home / name)
        assert isinstance(found, dict)
        assert isinstance(value, dict)
        assert found == {**value, "added": 1}, name


def test_a_file_that_cannot_be_read_stops_everything(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in {"settings.json": "{}", "../.claude.json": '{"mcpServers": // a comment\n{}}'}.items():
        path = home / ".claude" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    before = read_tree(home)
    assert main(["install", "claude-code"]) == 2
    assert "is no JSON" in capsys.readouterr().err
    assert read_tree(home) == before
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").write_text("[broken")
    assert main(["install", "codex"]) == 2
    assert "is no TOML" in capsys.readouterr().err
    assert not (home / ".codex/hooks.json").exists()


def test_a_configuration_that_is_a_link_stays_one_and_keeps_its_mode(home: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "settings.json"
    real.parent.mkdir()
    real.write_text("{}")
    real.chmod(0o640)
    link = home / ".claude" / "settings.json"
    link.parent.mkdir()
    link.symlink_to(real)
    assert main(["install", "claude-code"]) == 0
    assert link.is_symlink()
    assert "hook_script.py" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o640
    assert main(["install", "claude-code", "--uninstall"]) == 0
    assert real.read_text() == "{}"


def test_our_commands_are_told_from_others(home: Path) -> None:
    assert main(["install", "claude-code"]) == 0
    hooks = json.loads((home / ".claude" / "settings.json").read_text())["hooks"]
    for groups in hooks.values():
        assert is_own_command(groups[0]["hooks"][0]["command"])
    assert is_own_command("/usr/bin/python3 -I -S /opt/sevenfold/resident/hook_script.py Stop")
    assert not is_own_command("python mine/hook_script.py Stop")


@pytest.mark.parametrize("gone", ["script", "python"])
def test_a_hook_whose_program_is_gone_blocks_nothing(tmp_path: Path, gone: str) -> None:
    paths = install.find_install_paths()
    script = tmp_path / "a folder" / "sevenfold" / HOOK_SCRIPT
    script.parent.mkdir(parents=True)
    shutil.copy(paths.script, script)
    paths = replace(paths, script=str(script))
    if gone == "script":
        script.unlink()
    else:
        paths = replace(paths, python=str(tmp_path / "gone" / "python"))
    command = paths.hook_command("PreToolUse")
    done = subprocess.run(["sh", "-c", command], input=b"{}", capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")
    assert is_own_command(command)


FOREIGN = {"command": "node", "args": ["mine.js"]}

UNRECORDED: dict[str, dict[str, str]] = {
    "claude-code": {
        ".claude/settings.json": '{\n  "hooks": {},\n  "list": [1, 2]\n}',
        ".claude.json": json.dumps({"mcpServers": {"sevenfold": FOREIGN}}),
        ".claude/commands/sevenfold-recall.md": "mine",
    },
    "codex": {".codex/hooks.json": '{"hooks": {"Stop": []}}', ".codex/config.toml": ""},
    "opencode": {".config/opencode/opencode.json": '{\n  "mcp": {},\n  "list": [1, 2]\n}'},
    "goose": {".config/goose/config.yaml": "extensions:\n"},
    "continue": {".continue/config.yaml": ""},
    "cursor": {".cursor/mcp.json": '{"mcpServers": {}}'},
}


@pytest.mark.parametrize("agent", INSTALLABLE_AGENTS)
def test_uninstalling_what_was_never_installed_changes_nothing(home: Path, agent: str) -> None:
    for name, text in UNRECORDED[agent].items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    before = read_tree(home)
    assert main(["install", agent, "--uninstall"]) == 0
    assert read_tree(home) == before


def test_without_a_record_exactly_our_entries_go_and_no_file_does(home: Path, tmp_path: Path) -> None:
    assert main(["install", "cursor"]) == 0
    shutil.rmtree(tmp_path / "own" / "installed")
    assert main(["install", "cursor", "--uninstall"]) == 0
    assert (home / ".cursor/mcp.json").read_text() == "{}\n"


@pytest.mark.parametrize(
    ("agent", "name", "text"),
    [
        ("cursor", ".cursor/mcp.json", json.dumps({"mcpServers": {"sevenfold": FOREIGN}})),
        ("codex", ".codex/config.toml", "[mcp_servers.sevenfold]\ncommand = 'x'\n"),
        ("goose", ".config/goose/config.yaml", "extensions:\n    sevenfold:\n        cmd: x\n"),
        ("continue", ".continue/config.yaml", "mcpServers:\n  - command: x\n    name: sevenfold\n"),
    ],
)
def test_a_server_of_the_same_name_is_refused(
    home: Path, agent: str, name: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / name).parent.mkdir(parents=True)
    (home / name).write_text(text)
    assert main(["install", agent]) == 2
    assert "that is not ours" in capsys.readouterr().err
    assert read_tree(home) == {name: text.encode()}


@pytest.mark.parametrize("is_upgrade", [False, True])
def test_an_install_that_stops_half_way_loses_no_original(
    home: Path, is_upgrade: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home / ".cursor/mcp.json"
    path.parent.mkdir()
    original = '{\n  "mcpServers": {},\n  "list": [1, 2]\n}'
    path.write_text(original)
    paths = install.find_install_paths()
    if is_upgrade:  # by another environment, whose command is elsewhere
        old = replace(paths, server=("/old/bin/sevenfold", "mcp"))
        with monkeypatch.context() as patched:
            patched.setattr(install, "find_install_paths", lambda: old)
            assert main(["install", "cursor"]) == 0

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(install, "replace_file", stop)
        assert main(["install", "cursor"]) == 130
    assert main(["install", "cursor"]) == 0
    assert paths.server[0] in path.read_text()
    assert main(["install", "cursor", "--uninstall"]) == 0
    assert path.read_text() == original


def test_a_surrogate_without_its_pair_is_kept(home: Path) -> None:
    path = home / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_text('{"cut": "\\ud83d", "whole": "é😀"}')
    assert main(["install", "cursor"]) == 0
    assert '"\\ud83d"' in path.read_text()
    assert '"é😀"' in path.read_text()


@pytest.mark.parametrize("between", ["\n", "# mine\n", "      # mine\n\n"])
@pytest.mark.parametrize("indent", ["  ", "    "])
def test_an_extension_below_blank_lines_and_comments_stays_one(home: Path, between: str, indent: str) -> None:
    path = home / ".config/goose/config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(f"extensions:\n{between}{indent}other:\n{indent * 2}enabled: true\n")
    assert main(["install", "goose"]) == 0
    found = yaml.safe_load(path.read_text())["extensions"]
    assert found["other"] == {"enabled": True}
    assert found["sevenfold"]["type"] == "stdio"
    path.write_text(path.read_text() + "added: 1\n")
    assert main(["install", "goose", "--uninstall"]) == 0
    assert yaml.safe_load(path.read_text()) == {"extensions": {"other": {"enabled": True}}, "added": 1}


@pytest.mark.parametrize("below", ["  - other\n", "  {other: 1}\n", "\tother: 1\n"])
def test_extensions_that_are_no_table_are_refused(
    home: Path, below: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / ".config/goose/config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(f"extensions:\n\n{below}")
    assert main(["install", "goose"]) == 2
    assert "Write it as a plain table" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("agent", "variable"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR"),
        ("codex", "CODEX_HOME"),
        ("opencode", "XDG_CONFIG_HOME"),
        ("goose", "XDG_CONFIG_HOME"),
        ("continue", "CONTINUE_GLOBAL_DIR"),
    ],
)
def test_two_configurations_of_one_agent_are_both_taken_back(
    home: Path, agent: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_configs(home, agent)
    before = read_tree(home)
    assert main(["install", agent]) == 0
    monkeypatch.setenv(variable, str(home / "second"))
    assert main(["install", agent]) == 0
    assert (home / "second").is_dir()
    assert read_tree(home / "second")
    monkeypatch.delenv(variable)
    assert main(["install", agent, "--uninstall"]) == 0
    assert read_tree(home) == before
    assert not (home / "second").exists()


def test_a_new_configuration_of_continue_has_what_continue_asks_for(home: Path) -> None:
    path = home / ".continue/config.yaml"
    assert main(["install", "continue"]) == 0
    found = parse(path)
    assert isinstance(found, dict)
    assert {"name", "version", "schema", "mcpServers"} == set(cast("dict[str, object]", found))
    # Continue adds models by itself.
    path.write_text(f"{path.read_text()}models: []\n")
    assert main(["install", "continue", "--uninstall"]) == 0
    assert parse(path) == {"name": "Main Config", "version": "1.0.0", "schema": "v1", "models": []}


def test_slash_commands_run_the_program_by_its_path(home: Path) -> None:
    assert main(["install", "claude-code"]) == 0
    pages = {path.stem: path.read_text() for path in (home / ".claude/commands").iterdir()}
    assert len(pages) == 4
    commands = [line for text in pages.values() for line in text.splitlines() if line.startswith("!")]
    assert len(commands) == 3
    for command in commands:
        program = shlex.split(command.strip("!`"))[0]
        assert Path(program).is_absolute()
        assert Path(program).exists()
    assert all("{command}" not in text for text in pages.values())


@pytest.mark.parametrize("edits", [False, True])
def test_comments_of_a_configuration_stay(home: Path, edits: bool) -> None:
    path = home / ".config/opencode/opencode.json"
    path.parent.mkdir(parents=True)
    before = '{\n  // mine\n  "theme": "x",\n  "mcp": {\n    "other": {"type": "local"}, // theirs\n  },\n}\n'
    path.write_text(before)
    assert main(["install", "opencode"]) == 0
    assert "// mine" in path.read_text()
    assert HOOK_SCRIPT not in path.read_text()
    assert '"mcp"' in path.read_text().split('"sevenfold"')[0]
    if edits:
        path.write_text(path.read_text().replace("// mine", "// still mine"))
    assert main(["install", "opencode"]) == 0
    assert main(["install", "opencode", "--uninstall"]) == 0
    assert path.read_text() == before.replace("// mine", "// still mine" if edits else "// mine")


def test_an_entry_whose_comments_an_agent_has_dropped_goes_too(home: Path) -> None:
    path = home / ".config/goose/config.yaml"
    write_configs(home, "goose")
    before = parse(path)
    assert isinstance(before, dict)
    assert main(["install", "goose"]) == 0
    path.write_text(yaml.safe_dump({**cast("dict[str, object]", parse(path)), "added": 1}, sort_keys=False))
    assert main(["install", "goose"]) == 0  # again: it is ours
    path.write_text(yaml.safe_dump(parse(path), sort_keys=False))
    assert main(["install", "goose", "--uninstall"]) == 0
    assert parse(path) == {**before, "added": 1}
    # Somebody else's of that name stays.
    path.write_text("extensions:\n  sevenfold:\n    cmd: other\n")
    assert main(["install", "goose", "--uninstall"]) == 0
    assert parse(path) == {"extensions": {"sevenfold": {"cmd": "other"}}}


def test_line_ends_of_windows_stay(home: Path) -> None:
    path = home / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_bytes(b'{\r\n  "mcpServers": {}\r\n}\r\n')
    assert main(["install", "cursor"]) == 0
    text = path.read_bytes()
    assert text.count(b"\n") == text.count(b"\r\n") > 3
    assert text.endswith(b"}\r\n")


@pytest.mark.parametrize(
    ("agent", "name", "text", "said"),
    [
        ("claude-code", ".claude/settings.json", '{\n  // mine\n  "hooks": {}\n}', "comments"),
        ("cursor", ".cursor/mcp.json", '{"mcpServers": {}', "is no JSON"),
        ("codex", ".codex/config.toml", 'mcp_servers = {a = {command = "x"}}', "inline table"),
    ],
)
def test_a_file_that_nothing_can_be_added_to_is_refused_with_the_way_out(
    home: Path, agent: str, name: str, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert main(["install", agent]) == 2
    assert said in capsys.readouterr().err
    assert read_tree(home) == {name: text.encode()}


def test_a_dry_run_leaves_nothing_and_sums_up(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = home.parent / "own"
    write_configs(home, "claude-code")
    assert main(["install", "claude-code", "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "2 files to be changed" in told
    assert "to be created" in told
    assert not (own / "installed").exists()
    assert main(["install", "claude-code"]) == 0
    assert main(["install", "claude-code", "--uninstall"]) == 0
    assert not (own / "installed").exists()
    capsys.readouterr()
    assert main(["install", "claude-code", "--uninstall"]) == 0
    assert "nothing to change: claude-code has nothing of Sevenfold" in capsys.readouterr().out
    assert not (own / "installed").exists()
