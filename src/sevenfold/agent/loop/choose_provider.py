"""Which model is asked, and where: by settings and the environment, as their owners know them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sevenfold.core.errors import ProviderMissing
from sevenfold.core.json import EMPTY_OBJECT, JsonObject
from sevenfold.core.models import Model, is_local_model
from sevenfold.core.requests import RequestParams
from sevenfold.core.settings.agent import AgentSettings
from sevenfold.providers.provider import Provider

ANTHROPIC_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL")
OPENAI_VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL")
ANTHROPIC_URL = "https://api.anthropic.com"
OPENAI_URL = "https://api.openai.com/v1"
"""Said outright, so that the environment of the process does not count where another was handed in."""
DEFAULT_MODEL = "claude-opus-5-5"

MAX_REPLY_TOKENS = 32_000
"""Of one answer. Longer ones are files that are better written in parts."""


def choose_provider(model: Model, settings: AgentSettings, environ: Mapping[str, str]) -> Provider:
    """Who answers for this model, by settings and the environment; `ProviderMissing` says what was looked
    for."""
    if is_local_model(model.name):
        from sevenfold.providers.local import LocalProvider

        return LocalProvider(Path(model.name).expanduser(), window_tokens=model.window_tokens)
    if settings.base_url:
        from sevenfold.providers.openai.chat import ChatProvider

        return ChatProvider(base_url=settings.base_url, api_key=environ.get("OPENAI_API_KEY"))
    if any(environ.get(name) for name in ANTHROPIC_VARIABLES):
        from sevenfold.providers.anthropic import AnthropicProvider

        key = environ.get("ANTHROPIC_API_KEY") or None
        # One of them alone, and the key where there are both, as the SDK has it.
        token = None if key else environ.get("ANTHROPIC_AUTH_TOKEN") or None
        url = environ.get("ANTHROPIC_BASE_URL") or ANTHROPIC_URL
        return AnthropicProvider(base_url=url, api_key=key, auth_token=token)
    if any(environ.get(name) for name in OPENAI_VARIABLES):
        from sevenfold.providers.openai.chat import ChatProvider

        url = environ.get("OPENAI_BASE_URL") or OPENAI_URL
        return ChatProvider(base_url=url, api_key=environ.get("OPENAI_API_KEY"))
    raise ProviderMissing(
        f"no model to talk to: none of {', '.join((*ANTHROPIC_VARIABLES, *OPENAI_VARIABLES))} is "
        f"set, nor agent.base_url; set a "
        "key, or agent.base_url to any server that speaks like OpenAI's, or agent.model to a .gguf file, or "
        "try `sevenfold tour`"
    )


def fit_request_params(
    frame: RequestParams, model: Model, provider: Provider, *, thinks: bool
) -> RequestParams:
    """The frame with what its model takes: how long an answer may be, and how it thinks."""
    params = EMPTY_OBJECT
    if thinks and model.is_known and provider.dialect == "anthropic" and not model.takes_prefill:
        params = JsonObject({"thinking": JsonObject({"type": "adaptive"})})
    most = min(MAX_REPLY_TOKENS, model.max_output_tokens)
    return replace(frame, max_tokens=most, params=params)
