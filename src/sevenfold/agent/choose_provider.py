"""Which model is asked, and where: by settings and the environment, as their owners know them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sevenfold.core.errors import ProviderMissing
from sevenfold.core.json import EMPTY, JsonObject
from sevenfold.core.models import Model, is_local
from sevenfold.core.requests import Frame
from sevenfold.providers.provider import Provider
from sevenfold.run.agent_settings import AgentSettings

ANTHROPIC = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL")
OPENAI = ("OPENAI_API_KEY", "OPENAI_BASE_URL")
ANTHROPIC_URL = "https://api.anthropic.com"
OPENAI_URL = "https://api.openai.com/v1"
"""Said outright, so that the environment of the process does not count where another was handed in."""
USUAL_MODEL = "claude-opus-5-5"

MOST_OUTPUT = 32_000
"""Of one answer. Longer ones are files that are better written in parts."""


def choose_provider(model: Model, settings: AgentSettings, environ: Mapping[str, str]) -> Provider:
    """Who answers for this model, by settings and the environment; `ProviderMissing` says what was looked
    for."""
    if is_local(model.name):
        from sevenfold.providers.local import LocalProvider

        return LocalProvider(Path(model.name).expanduser(), window_tokens=model.window_tokens)
    if settings.base_url:
        from sevenfold.providers.openai_chat import ChatProvider

        return ChatProvider(base_url=settings.base_url, api_key=environ.get("OPENAI_API_KEY"))
    if any(environ.get(name) for name in ANTHROPIC):
        from sevenfold.providers.anthropic import AnthropicProvider

        key = environ.get("ANTHROPIC_API_KEY") or None
        # One of them alone, and the key where there are both, as the SDK has it.
        token = None if key else environ.get("ANTHROPIC_AUTH_TOKEN") or None
        url = environ.get("ANTHROPIC_BASE_URL") or ANTHROPIC_URL
        return AnthropicProvider(base_url=url, api_key=key, auth_token=token)
    if any(environ.get(name) for name in OPENAI):
        from sevenfold.providers.openai_chat import ChatProvider

        url = environ.get("OPENAI_BASE_URL") or OPENAI_URL
        return ChatProvider(base_url=url, api_key=environ.get("OPENAI_API_KEY"))
    raise ProviderMissing(
        f"no model to talk to: none of {', '.join((*ANTHROPIC, *OPENAI))} is set, nor agent.base_url; set a "
        "key, or agent.base_url to any server that speaks like OpenAI's, or agent.model to a .gguf file, or "
        "try `sevenfold tour`"
    )


def fit_frame(frame: Frame, model: Model, provider: Provider, *, thinks: bool) -> Frame:
    """The frame with what its model takes: how long an answer may be, and how it thinks."""
    params = EMPTY
    if thinks and model.is_known and provider.dialect == "anthropic" and not model.takes_prefill:
        params = JsonObject({"thinking": JsonObject({"type": "adaptive"})})
    most = min(MOST_OUTPUT, model.max_output_tokens)
    return replace(frame, max_tokens=most, params=params)
