"""A run sends requests where the agent's own configuration leads, and leads the agent past it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sevenfold.cli.proxy import find_upstreams
from sevenfold.core.errors import InputError
from sevenfold.proxy.agent_servers import find_named_servers, make_arguments, refuse_override
from sevenfold.proxy.profiles import PROFILES, AgentProfile, ProxiedApi, find_profile
from sevenfold.proxy.server import ANTHROPIC_API, OPENAI_API, Upstreams

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


def test_arguments_lead_past_a_file_only_where_there_is_one(tmp_path: Path) -> None:
    write(tmp_path, "home/.claude/settings.json", json.dumps({"env": {"ANTHROPIC_BASE_URL": GATE}}))
    write(tmp_path, "home/.codex/config.toml", CODEX)
    environ = {"HOME": str(tmp_path / "home")}
    claude, codex = profile("claude"), profile("codex")
    servers = find_named_servers(claude, environ, tmp_path)
    option, settings = make_arguments(claude, servers, URL)
    assert (option, json.loads(settings)) == ("--settings", {"env": {"ANTHROPIC_BASE_URL": URL}})
    assert make_arguments(claude, {}, URL) == ()
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


def test_every_agent_that_variables_lead_past_has_its_files_named() -> None:
    assert {one.name for one in PROFILES if not one.config_keys} == {"pi", "continue"}
