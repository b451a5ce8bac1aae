"""A provider whose every call but the conversation's own goes through the spend governor."""

from __future__ import annotations

from sevenfold.core.errors import ProviderError
from sevenfold.core.messages import Message
from sevenfold.core.requests import ModelRequest, ModelResponse
from sevenfold.core.tokens.estimators import estimate_message
from sevenfold.core.usage import Usage
from sevenfold.providers.memo import ListMemo
from sevenfold.providers.provider import OnDelta, Provider, ProviderWrapper
from sevenfold.session.spend.budget import MAIN_KIND
from sevenfold.session.spend.governor import Governor

DEFAULT_OUTPUT_TOKENS = 2_048
"""What an answer of background work is expected to take at most: notes and summaries rarely take more. A cap
may be passed by what calls under way take beyond what was expected."""


class GovernedProvider(ProviderWrapper):
    """Holds before each call and settles after it, by whose call it is. `free` names who is not governed."""

    def __init__(
        self, inner: Provider, governor: Governor, *, free: frozenset[str] = frozenset({MAIN_KIND})
    ) -> None:
        super().__init__(inner)
        self._governor, self._free = governor, free
        self._weights = ListMemo[Message, int](estimate_message)

    async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        if request.who in self._free:
            return await self._inner.send(request, on_delta)
        hold = await self._governor.hold(request.who, request.frame.model, self._expected(request))
        try:
            reply = await self._inner.send(request, on_delta)
        except ProviderError as error:
            await self._governor.fail(hold, error)
            raise
        except BaseException:
            await self._governor.abandon(hold)
            raise
        await self._governor.charge(hold, reply, request.frame.model)
        return reply

    def _expected(self, request: ModelRequest) -> Usage:
        """A marked prompt is a fork's, and comes out of the cache; any other is paid in full."""
        prompt = sum(self._weights.of(request.messages))
        output = min(request.frame.max_tokens, DEFAULT_OUTPUT_TOKENS)
        return (
            Usage(read=prompt, output=output) if request.breakpoints else Usage(fresh=prompt, output=output)
        )
