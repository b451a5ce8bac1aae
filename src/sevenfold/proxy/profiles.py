"""The agents that are known, as data: how to recognize the requests of each, and how to start it.

A new agent is one entry. What each sends was recorded from real runs; an agent without an entry is forwarded
and billed like the others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

LayerName: TypeAlias = Literal[
    "breakpoints", "spill", "recall", "rules", "clearing", "compaction", "extraction"
]
"""What the proxy may do for an agent beside forwarding."""

ProxiedApi: TypeAlias = Literal["anthropic", "openai"]

URL = "{url}"
"""Stands for the proxy's address in variables and arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """Where an agent's own configuration names a server."""

    file: str
    """In the home directory if it begins with `~/`, else in the project."""
    key: str
    """With dots between names; one in braces stands for the value that it has in the file."""
    api: ProxiedApi
    beats_environ: bool = False
    """Whether the agent heeds it before a variable of its environment."""
    folder_variable: str = ""
    """An environment variable that names another folder for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProfile:
    name: str
    """As `sevenfold run` takes it."""
    program: str
    """The command that starts it."""
    user_agents: tuple[str, ...] = ()
    """How its `user-agent` header may begin."""
    session_headers: tuple[str, ...] = ()
    """Headers that name the conversation."""
    agent_header: str = ""
    """The header that names a sub-agent."""
    has_tools: bool = True
    """Whether requests of a turn declare tools: then one without them is for something else, such as a
    title."""
    compaction_phrases: tuple[str, ...] = ()
    """What the last user message holds when the agent asks for a summary of its own conversation."""
    side_phrases: tuple[str, ...] = ()
    """What the system prompt holds when a request that looks like a turn is for something else."""
    layers: frozenset[LayerName] = frozenset()
    """What may be done for it. Without an entry here its requests are forwarded and billed alone."""
    moving_tag: str = ""
    """The tag of a text that the agent puts into another message in each request, which changes what was sent
    before. Where old turns may be rewritten, it is put behind the last message instead."""
    machine_texts: tuple[str, ...] = ()
    """Regular expressions of what the agent itself writes into messages of the user: no person said it."""
    machine_tags: tuple[str, ...] = ()
    """The tags of such texts."""
    machine_marks: tuple[str, ...] = ()
    """Regular expressions of a text that stands beside text of a file, in one message of the user: none of
    that message is taken for what a person said."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """Environment variables that lead it to the proxy."""
    arguments: tuple[str, ...] = ()
    """The same as arguments, put before the user's own."""
    config_keys: tuple[ConfigKey, ...] = ()
    """Where its files may name a server that requests are to go to."""
    override: tuple[str, ...] = ()
    """The arguments against what a file names, if variables or the arguments above would not do. Those with
    `{key}`, which is where it stands, are used only if one does."""
    one_shot: frozenset[str] = frozenset()
    """Arguments with which it answers once and draws no screen."""
    is_led_by_file: bool = False
    """Whether a file names where its requests go: a run has a copy of it (`agent_files`)."""

    def make_environ(self, url: str) -> dict[str, str]:
        return {name: value.replace(URL, url) for name, value in self.variables.items()}

    def make_arguments(self, url: str) -> tuple[str, ...]:
        return tuple(argument.replace(URL, url) for argument in self.arguments)

    @property
    def apis(self) -> frozenset[ProxiedApi]:
        """That it may ask."""
        return frozenset(key.api for key in self.config_keys) or frozenset(_APIS)

    @property
    def can_start(self) -> bool:
        return bool(self.variables or self.arguments or self.is_led_by_file)


_APIS: tuple[ProxiedApi, ...] = ("anthropic", "openai")
_MEMORY: frozenset[LayerName] = frozenset({"recall", "rules", "extraction"})
_ALL_BUT_COMPACTION: frozenset[LayerName] = frozenset({"breakpoints", "spill", "clearing", *_MEMORY})
_ALL: frozenset[LayerName] = frozenset({"compaction", *_ALL_BUT_COMPACTION})

_DOTENV_KEYS = (
    ConfigKey(file=".env", key="ANTHROPIC_BASE_URL", api="anthropic", beats_environ=True),
    ConfigKey(file=".env", key="OPENAI_API_BASE", api="openai", beats_environ=True),
)
_OPENCODE_CONFIG = json.dumps(
    {
        "provider": {
            "anthropic": {"options": {"baseURL": f"{URL}/v1"}},
            "openai": {"options": {"baseURL": f"{URL}/v1"}},
        }
    }
)

PROFILES: tuple[AgentProfile, ...] = (
    AgentProfile(
        name="claude",
        program="claude",
        one_shot=frozenset({"-p", "--print"}),
        user_agents=("claude-cli/", "claude-code/"),
        session_headers=("x-claude-code-session-id",),
        agent_header="x-claude-code-agent-id",
        compaction_phrases=("create a detailed summary of the conversation",),
        # It stores large results, places breakpoints and compacts itself; its hooks bring memories.
        layers=frozenset({"clearing", "extraction"}),
        # Commands and skills of a project come as text of the user.
        machine_marks=(r"<command-(?:name|message|contents)>", r"\ABase directory for this skill: "),
        variables={"ANTHROPIC_BASE_URL": URL},
        config_keys=(
            ConfigKey(
                file="~/.claude/settings.json",
                key="env.ANTHROPIC_BASE_URL",
                api="anthropic",
                beats_environ=True,
                folder_variable="CLAUDE_CONFIG_DIR",
            ),
            *(
                ConfigKey(file=name, key="env.ANTHROPIC_BASE_URL", api="anthropic", beats_environ=True)
                for name in (".claude/settings.json", ".claude/settings.local.json")
            ),
        ),
        override=("--settings", json.dumps({"env": {"ANTHROPIC_BASE_URL": URL}})),
    ),
    AgentProfile(
        name="codex",
        program="codex",
        one_shot=frozenset({"exec", "e"}),
        user_agents=("codex_cli_rs/", "codex_exec/", "codex/"),
        session_headers=("session-id", "session_id", "thread-id"),
        # The provider caches by itself.
        layers=_ALL_BUT_COMPACTION - {"breakpoints"},
        machine_texts=(r"^# AGENTS\.md instructions.*",),
        machine_tags=("environment_context", "INSTRUCTIONS", "user_instructions", "skills_instructions"),
        arguments=(
            *("-c", 'model_provider="sevenfold"'),
            *("-c", 'model_providers.sevenfold.name="Sevenfold proxy"'),
            *("-c", f'model_providers.sevenfold.base_url="{URL}/v1"'),
            *("-c", 'model_providers.sevenfold.wire_api="responses"'),
            *("-c", 'model_providers.sevenfold.env_key="OPENAI_API_KEY"'),
        ),
        config_keys=(
            ConfigKey(
                file="~/.codex/config.toml",
                key="model_providers.{model_provider}.base_url",
                api="openai",
                beats_environ=True,
                folder_variable="CODEX_HOME",
            ),
        ),
        # The provider stays the one that the file chooses, with its key and headers.
        override=("-c", f'{{key}}="{URL}"'),
    ),
    AgentProfile(
        name="opencode",
        program="opencode",
        one_shot=frozenset({"run"}),
        user_agents=("opencode/",),
        session_headers=("x-session-id",),
        layers=_ALL_BUT_COMPACTION,
        variables={"OPENCODE_CONFIG_CONTENT": _OPENCODE_CONFIG},
        config_keys=tuple(
            ConfigKey(file=file, key=f"provider.{api}.options.baseURL", api=api, beats_environ=True)
            for api in _APIS
            for file in (
                *("~/.config/opencode/opencode.json", "~/.config/opencode/opencode.jsonc"),
                *("opencode.json", "opencode.jsonc"),
            )
        ),
    ),
    AgentProfile(
        name="goose",
        program="goose",
        one_shot=frozenset({"run"}),
        user_agents=("goose/",),
        session_headers=("agent-session-id",),
        layers=_ALL,
        moving_tag="info-msg",
        variables={"ANTHROPIC_HOST": URL, "OPENAI_HOST": URL},
        config_keys=tuple(
            ConfigKey(file="~/.config/goose/config.yaml", key=f"{api.upper()}_HOST", api=api) for api in _APIS
        ),
    ),
    AgentProfile(
        name="qwen",
        program="qwen",
        one_shot=frozenset({"-p", "--prompt"}),
        user_agents=("QwenCode/", "qwen-code/"),
        layers=_ALL_BUT_COMPACTION,
        variables={"OPENAI_BASE_URL": f"{URL}/v1"},
        config_keys=(
            ConfigKey(file="~/.qwen/settings.json", key="env.OPENAI_BASE_URL", api="openai"),
            ConfigKey(file="~/.qwen/settings.json", key="security.auth.baseUrl", api="openai"),
            ConfigKey(file="~/.qwen/.env", key="OPENAI_BASE_URL", api="openai"),
            ConfigKey(file=".env", key="OPENAI_BASE_URL", api="openai"),
        ),
    ),
    AgentProfile(
        name="mini-swe-agent",
        program="mini",
        # It calls itself litellm, as all programs do that use that library.
        layers=_ALL,
        machine_texts=(r"^Please solve this issue:\s*", r"\n\nYou can execute bash commands.*"),
        variables={"ANTHROPIC_BASE_URL": URL, "OPENAI_BASE_URL": f"{URL}/v1"},
        config_keys=tuple(
            ConfigKey(file="~/.config/mini-swe-agent/.env", key=f"{api.upper()}_BASE_URL", api=api)
            for api in _APIS
        ),
    ),
    AgentProfile(
        name="aider",
        program="aider",
        one_shot=frozenset({"-m", "--message", "--message-file"}),
        has_tools=False,
        side_phrases=(
            "one-line Git commit messages",
            "summarize this partial conversation",
        ),
        layers=frozenset({"breakpoints", "recall", "extraction"}),
        variables={"ANTHROPIC_BASE_URL": URL, "OPENAI_API_BASE": f"{URL}/v1"},
        # It prefers the variables in a file `.env` to those of its environment.
        arguments=(
            *("--set-env", f"ANTHROPIC_BASE_URL={URL}"),
            *("--set-env", f"OPENAI_API_BASE={URL}/v1"),
        ),
        config_keys=(
            ConfigKey(file="~/.aider.conf.yml", key="openai-api-base", api="openai", beats_environ=True),
            *(replace(key, file=f"~/{key.file}") for key in _DOTENV_KEYS),
            *_DOTENV_KEYS,
        ),
    ),
    AgentProfile(
        name="pi",
        program="pi",
        user_agents=("pi/",),
        layers=_ALL,
        one_shot=frozenset({"-p", "--print"}),
        is_led_by_file=True,
    ),
    AgentProfile(
        name="continue",
        program="cn",
        user_agents=("Continue/",),
        layers=_ALL,
        one_shot=frozenset({"-p", "--print"}),
        is_led_by_file=True,
    ),
)


def find_profile(name: str) -> AgentProfile | None:
    """By the name of the agent, or of the program that starts it."""
    return next((profile for profile in PROFILES if name in (profile.name, profile.program)), None)


def recognize_agent(headers: Mapping[str, str]) -> AgentProfile | None:
    """By how a client calls itself, or by a header that only one agent sends."""
    user_agent = headers.get("user-agent", "")
    for profile in PROFILES:
        own = (name for name in profile.session_headers if name.startswith("x-"))
        if user_agent.startswith(profile.user_agents) or any(name in headers for name in own):
            return profile
    return None
