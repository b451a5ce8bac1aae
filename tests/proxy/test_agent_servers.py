"""A run sends requests where the agent's own configuration leads, and leads the agent past it."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from sevenfold.cli import main
from sevenfold.cli.proxy import find_upstreams
from sevenfold.core.errors import InputError
from sevenfold.proxy.agent_servers import (
    MAX_AGENT_FILE_BYTES,
    find_named_servers,
    make_arguments,
    refuse_override,
    refuse_project_servers,
)
from sevenfold.proxy.profiles import PROFILES, AgentProfile, ProxiedApi, find_profile
from sevenfold.proxy.requests import ANTHROPIC_API, OPENAI_API, Upstreams

GATE, URL = "https://gate.example.org/llm", "http://127.0.0.1:1/run/x"
CODEX = f"""
model_provider = "gate"
[model_providers.other]
base_url = "https://other.example.org/v1"
[model_providers.gate]
base_url = "{GATE}/v1"
env_key = "GATE_KEY"
"""
JSONC = f"""
{{ // mine, see https://example.org
  "provider": {{"anthropic": {{"options": {{"baseURL": "{GATE}/v1"}}}}}} /* no more */
}}
"""


def profile(agent: str) -> AgentProfile:
    found = find_profile(agent)
    assert found is not None
    return found


def write(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def read_upstreams(tmp_path: Path, agent: str, **environ: str) -> Upstreams:
    named = {"HOME": str(tmp_path / "home"), **environ}
    (tmp_path / "project/below").mkdir(parents=True, exist_ok=True)
    servers = find_named_servers(profile(agent), named, tmp_path / "project/below")
    return find_upstreams(None, named, profile(agent), servers)


@pytest.mark.parametrize(
    ("agent", "name", "text", "api"),
    [
        ("claude", "home/.claude/settings.json", {"env": {"ANTHROPIC_BASE_URL": GATE}}, "anthropic"),
        ("claude", "project/.claude/settings.local.json", {"env": {"ANTHROPIC_BASE_URL": GATE}}, "anthropic"),
        ("codex", "home/.codex/config.toml", CODEX, "openai"),
        ("opencode", "home/.config/opencode/opencode.jsonc", JSONC, "anthropic"),
        (
            "opencode",
            "project/opencode.json",
            {"provider": {"openai": {"options": {"baseURL": GATE}}}},
            "openai",
        ),
        ("goose", "home/.config/goose/config.yaml", f"GOOSE_MODE: auto\nOPENAI_HOST: '{GATE}'\n", "openai"),
        ("qwen", "home/.qwen/settings.json", {"security": {"auth": {"baseUrl": f"{GATE}/v1"}}}, "openai"),
        ("mini-swe-agent", "home/.config/mini-swe-agent/.env", f"ANTHROPIC_BASE_URL={GATE}\n", "anthropic"),
        ("aider", "project/.env", f"A=b\nexport ANTHROPIC_BASE_URL='{GATE}'\n", "anthropic"),
    ],
)
def test_requests_go_to_the_server_that_the_configuration_names(
    tmp_path: Path, agent: str, name: str, text: object, api: ProxiedApi
) -> None:
    write(tmp_path, name, text if isinstance(text, str) else json.dumps(text))
    found = read_upstreams(tmp_path, agent)
    assert (found.anthropic, found.openai) == (
        (GATE, OPENAI_API) if api == "anthropic" else (ANTHROPIC_API, GATE)
    )


@pytest.mark.parametrize(
    ("name", "url", "is_refused"),
    [
        ("project/.claude/settings.json", GATE, True),
        ("project/below/.claude/settings.local.json", GATE, True),
        (".claude/settings.json", GATE, True),
        ("project/.claude/settings.json", "http://127.0.0.1.evil.example", True),
        ("project/.claude/settings.json", "http://localhost:4000", False),
        ("home/.claude/settings.json", GATE, False),
    ],
)
def test_a_file_of_the_project_sends_no_key_to_a_server_of_its_choice(
    tmp_path: Path, name: str, url: str, is_refused: bool
) -> None:
    write(tmp_path, name, json.dumps({"env": {"ANTHROPIC_BASE_URL": url}}))
    environ = {"HOME": str(tmp_path / "home")}
    for folder in ("project/below", "home/work"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    servers = find_named_servers(profile("claude"), environ, tmp_path / "project/below")
    with pytest.raises(InputError, match="--upstream") if is_refused else nullcontext():
        refuse_project_servers(servers.values())
    if name.startswith("home"):
        refuse_project_servers(
            find_named_servers(profile("claude"), environ, tmp_path / "home/work").values()
        )


KEY = '"ANTHROPIC_BASE_URL"'
ENV = f'{{"env": {{{KEY}: "{GATE}"}}'


@pytest.mark.parametrize(
    ("agent", "name", "text"),
    [
        *(
            ("claude", ".claude/settings.json", text)
            for text in (
                *(json.dumps({"env": {"ANTHROPIC_BASE_URL": url}}) for url in (f" {GATE}", f"{GATE}/$", 3)),
                *(json.dumps({"env": {"ANTHROPIC_BASE_URL": url}}) for url in ("http://[", GATE.upper())),
                json.dumps({"env": {"ANTHROPIC_BASE_URL": "http://gate.example\\@localhost"}}),
                *(f"{ENV},}}", f"\ufeff{ENV}}}", f'{ENV}, "env.ANTHROPIC_BASE_URL": 1}}', f"{ENV}}} ]"),
                ENV.replace("_", "\\u005f"),
                f'{ENV}, "x": "{"y" * MAX_AGENT_FILE_BYTES}"}}',
            )
        ),
        ("claude", ".claude/settings.local.json", ENV),
        ("opencode", "opencode.jsonc", JSONC + "}"),
        ("opencode", "opencode.json", '{"provider": {"openai": {"options": {"baseURL": "{env:X}"}}}}'),
        ("qwen", ".env", f"  OPENAI_BASE_URL={GATE}\n"),
        ("qwen", ".env", f"export\tOPENAI_BASE_URL={GATE}\n"),
        ("qwen", ".env", f'OPENAI_BASE_URL={GATE}\nA="\nOPENAI_BASE_URL=http://localhost:1\n"\n'),
        ("aider", ".env", "OPENAI_API_BASE=${GATE}\n"),
    ],
)
def test_a_file_of_the_project_that_cannot_be_read_here_may_be_read_by_the_agent(
    tmp_path: Path, agent: str, name: str, text: str
) -> None:
    write(tmp_path, f"project/{name}", text)
    environ = {"HOME": str(tmp_path / "home")}
    servers = find_named_servers(profile(agent), environ, tmp_path / "project")
    with pytest.raises(InputError, match="--upstream"):
        refuse_project_servers(servers.values())
    # In the home directory it is the user's own, and names a server or none.
    own = find_named_servers(profile(agent), {"HOME": str(tmp_path / "project")}, tmp_path / "project")
    refuse_project_servers(own.values())


@pytest.mark.parametrize(
    ("agent", "name", "text"),
    [
        ("claude", ".claude/settings.json", '{"env": {"ANTHROPIC_BASE_URL": ""}, "a": "ANTHROPIC_BASE_URL"}'),
        ("claude", ".claude/settings.json", '{"hooks": {},}'),
        ("claude", ".claude/settings.json", "{"),
        ("qwen", ".env", f"# OPENAI_BASE_URL={GATE}\nA=1 # instead of OPENAI_BASE_URL\nexport  B\n"),
        ("qwen", ".env", "OPENAI_BASE_URL='http://localhost:4000/v1'\nMY_OPENAI_BASE_URL=x\n"),
    ],
)
def test_a_file_of_the_project_that_sets_no_server_elsewhere_is_left_alone(
    tmp_path: Path, agent: str, name: str, text: str
) -> None:
    write(tmp_path, f"project/{name}", text)
    environ = {"HOME": str(tmp_path / "home")}
    refuse_project_servers(find_named_servers(profile(agent), environ, tmp_path / "project").values())


def test_run_starts_nothing_where_a_project_names_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "project/.claude/settings.json", json.dumps({"env": {"ANTHROPIC_BASE_URL": GATE}}))
    write(tmp_path, "bin/claude", f"#!/bin/sh\ntouch {tmp_path}/started\n")
    (tmp_path / "bin/claude").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.chdir(tmp_path / "project")
    assert main(["run", "claude"]) == 2
    assert f"names the server {GATE}" in capsys.readouterr().err
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    "text", ["{", "[1]", '{"env": 3}', '{"env": {"ANTHROPIC_BASE_URL": "$GATE"}}', "\0", "[" * 9_000]
)
def test_a_file_that_names_no_server_changes_nothing(tmp_path: Path, text: str) -> None:
    write(tmp_path, "home/.claude/settings.json", text)
    assert read_upstreams(tmp_path, "claude") == Upstreams()


def test_what_the_agent_heeds_first_counts(tmp_path: Path) -> None:
    write(tmp_path, "home/.claude/settings.json", json.dumps({"env": {"ANTHROPIC_BASE_URL": GATE}}))
    write(tmp_path, "home/.config/goose/config.yaml", f"ANTHROPIC_HOST: {GATE}\n")
    assert read_upstreams(tmp_path, "claude", ANTHROPIC_BASE_URL="http://set:1").anthropic == GATE
    assert read_upstreams(tmp_path, "goose", ANTHROPIC_HOST="http://set:1").anthropic == "http://set:1"


def test_arguments_lead_past_a_file_whether_or_not_it_was_found(tmp_path: Path) -> None:
    write(tmp_path, "home/.claude/settings.json", json.dumps({"env": {"ANTHROPIC_BASE_URL": GATE}}))
    write(tmp_path, "home/.codex/config.toml", CODEX)
    environ = {"HOME": str(tmp_path / "home")}
    claude, codex = profile("claude"), profile("codex")
    servers = find_named_servers(claude, environ, tmp_path)
    option, settings = make_arguments(claude, servers, URL)
    assert (option, json.loads(settings)) == ("--settings", {"env": {"ANTHROPIC_BASE_URL": URL}})
    assert make_arguments(claude, {}, URL) == (option, settings)
    assert make_arguments(claude, {}, URL, ["--settings", "mine.json"]) == ()
    assert make_arguments(claude, {}, URL, ["--settings=mine.json"]) == ()
    refuse_override(claude, {}, ["--settings", "mine.json"])
    refuse_override(claude, servers, ["-p", "hello"])
    for given in (["--settings", "mine.json"], ["--settings={}"]):
        with pytest.raises(InputError, match="--settings"):
            refuse_override(claude, servers, given)
    found = find_named_servers(codex, environ, tmp_path)
    refuse_override(codex, found, ["-c", 'model="gpt-5.5"'])
    assert make_arguments(codex, found, URL) == ("-c", f'model_providers.gate.base_url="{URL}/v1"')
    assert 'model_provider="sevenfold"' in make_arguments(codex, {}, URL)


def test_a_file_in_another_folder_is_found_by_its_variable(tmp_path: Path) -> None:
    write(tmp_path, "elsewhere/config.toml", CODEX)
    assert read_upstreams(tmp_path, "codex", CODEX_HOME=str(tmp_path / "elsewhere")).openai == GATE


def test_a_server_with_a_version_of_its_own_gets_no_other() -> None:
    urls = Upstreams(openai="https://gate.example.org/api/v4", anthropic="https://gate.example.org")
    assert urls.make_url("/v1/chat/completions", {}) == "https://gate.example.org/api/v4/chat/completions"
    assert urls.make_url("/v1/messages", {}) == "https://gate.example.org/v1/messages"
    beta = Upstreams(openai="https://gate.example.org/v1beta")
    for path in ("/v1beta/openai/models", "/v1/openai/models", "/openai/models"):
        assert beta.make_url(path, {}) == "https://gate.example.org/v1beta/openai/models"
    assert beta.make_url("/v1alpha/models", {}) == "https://gate.example.org/v1beta/v1alpha/models"


def test_every_agent_that_variables_lead_past_has_its_files_named() -> None:
    assert {one.name for one in PROFILES if not one.config_keys} == {"pi", "continue"}


def test_a_comment_that_nothing_closes_is_read_once(tmp_path: Path) -> None:
    def measure(times: int) -> float:
        write(tmp_path, "home/.claude/settings.json", "{" + "/* " * times)
        began = time.process_time()
        assert read_upstreams(tmp_path, "claude") == Upstreams()
        return time.process_time() - began

    short = min(measure(2_000) for _ in range(3))
    assert min(measure(32_000) for _ in range(3)) < 100 * short
