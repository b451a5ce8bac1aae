"""What is said at the first start: what was looked for, and the ways to get going."""

from __future__ import annotations

from collections.abc import Mapping

PROVIDER_VARIABLES = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "SEVENFOLD_AGENT_BASE_URL",
)


def render_setup_help(environ: Mapping[str, str], settings_path: str) -> tuple[str, ...]:
    """For a person who has no model yet."""
    found = [name for name in PROVIDER_VARIABLES if environ.get(name)]
    looked = f"found only {', '.join(found)}" if found else "none of them is set"
    return (
        "There is no model to talk to yet. I looked for",
        f"  in the environment  {', '.join(PROVIDER_VARIABLES[:3])},",
        f"                      {', '.join(PROVIDER_VARIABLES[3:])}: {looked}",
        f"  in settings         agent.base_url, in {settings_path}",
        "",
        "Ways to get going:",
        "  a key of Anthropic's            export ANTHROPIC_API_KEY=...",
        "  any server that speaks OpenAI   export SEVENFOLD_AGENT_BASE_URL=http://127.0.0.1:11434/v1",
        "                                  and name its model: sevenfold chat --model NAME",
        "  a GGUF file on this machine     pip install 'sevenfold[local]'",
        "                                  sevenfold chat --model path/to/model.gguf",
        "  no model at all                 sevenfold tour shows everything, offline, in a minute",
        "                                  sevenfold simulate is a model's API to test against",
    )
