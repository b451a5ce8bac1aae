"""A session's own calls beside the main conversation: watched, billed by kind and written down.

Whoever runs a fork with this provider gets all of it, and need not know.
"""

from __future__ import annotations

from sevenfold.core.clock import Clock
from sevenfold.core.requests import ModelRequest, ModelResponse
from sevenfold.providers.provider import OnDelta, Provider, ProviderWrapper
from sevenfold.session.cache.monitor import CacheMonitor
from sevenfold.session.journal import Journal
from sevenfold.store.transcript.records import UsageRecord


class MonitoredProvider(ProviderWrapper):
    """The session's provider, for forks."""

    def __init__(self, inner: Provider, watch: CacheMonitor, journal: Journal, clock: Clock) -> None:
        super().__init__(inner)
        self._watch, self._journal, self._clock = watch, journal, clock

    async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        self._watch.check(request, self._clock.now())
        reply = await self._inner.send(request, on_delta)
        self._watch.settle(request, reply, self._clock.now())
        model = reply.model or request.frame.model
        self._journal.add(
            UsageRecord(model=model, who=request.who, wire=reply.usage_wire, dialect=reply.dialect)
        )
        return reply

    async def close(self) -> None:
        """Nothing: it is its owner's."""
