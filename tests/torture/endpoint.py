"""The rig of hostile endpoints: every provider, async and sync, streamed and whole, against every harm."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from sevenfold.core.errors import (
    Overloaded,
    ProviderError,
    ProviderRefused,
    ProviderUnreachable,
    RateLimited,
    ReplyBroken,
)
from sevenfold.core.events import Event, RetryScheduled
from sevenfold.core.messages import Message
from sevenfold.core.requests import ModelRequest, RequestParams
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.providers.openai import ChatProvider, ResponsesProvider
from sevenfold.providers.provider import Provider, ignore_delta
from sevenfold.providers.reply_limits import CallOptions, limit_reply_bytes
from tests.torture.endpoint_stage import HARMS, HostileEndpoint, serve_harm
from tests.torture.rig import Orders, Outcome, outcome

MAX_TOKENS = 64
SLACK_BYTES = 16 * 1024 * 1024
"""What the buffers of two sockets, and of the server's transport, may take beyond what was read."""

DEADLINE_SECONDS = 120.0
"""A case takes a second; on a machine that is busy it may take longer, and must end all the same."""

Errors: TypeAlias = tuple[type[ProviderError], ...]

EXPECTED: Mapping[str, Errors] = {
    "endless-text": (ReplyBroken,),
    "endless-pings": (ReplyBroken, ProviderUnreachable),
    "silence": (ReplyBroken, ProviderUnreachable),
    "one-line": (ReplyBroken,),
    "many-lines": (ReplyBroken,),
    "bomb": (ReplyBroken,),
    "bomb-error": (ReplyBroken, ProviderUnreachable),
    "endless-error": (ReplyBroken, ProviderUnreachable),
    "brotli": (ReplyBroken,),
    "deep": (ReplyBroken,),
    "digits": (ReplyBroken,),
    "many-calls": (ReplyBroken,),
    "wait-an-hour": (RateLimited,),
    "wait-a-bit": (Overloaded,),
    "redirect": (ProviderRefused,),
}
"""What each harm ends in."""

OWN_TRANSPORT = frozenset({"bomb-error", "endless-error"})
"""The body of an error is read by the SDK: only a client of ours limits that."""

STALLED = frozenset({"endless-pings", "silence"})
"""What only a stall limit ends. All others get a limit that a busy machine never reaches."""

RETRIED = {"wait-a-bit": 3}
"""How many requests a harm may draw; one for all others."""


@dataclass(frozen=True, slots=True)
class Case:
    """One request to one endpoint."""

    provider: str
    harm: str
    streams: bool

    @property
    def name(self) -> str:
        return f"{self.provider}, {'streamed' if self.streams else 'whole'}, {self.harm}"


PROVIDERS = ("anthropic", "chat", "responses", "anthropic-sync", "chat-sync")


def list_cases(providers: Sequence[str] = PROVIDERS) -> list[Case]:
    """Every combination that there is."""
    return [
        Case(provider, harm, streams)
        for provider in providers
        for harm in HARMS
        for streams in (True, False)
        if not (provider.endswith("-sync") and harm in OWN_TRANSPORT)
    ]


def open_provider(name: str, url: str, options: CallOptions) -> Provider:
    """A provider that talks to this address; the sync ones with a client that was handed in."""
    match name:
        case "anthropic":
            return AnthropicProvider(base_url=url, api_key="k", options=options)
        case "anthropic-sync":
            from anthropic import Anthropic

            return AnthropicProvider(Anthropic(base_url=url, api_key="k"), options=options)
        case "responses":
            return ResponsesProvider(base_url=url, api_key="k", options=options)
        case "chat-sync":
            from openai import OpenAI

            return ChatProvider(OpenAI(base_url=url, api_key="k"), options=options)
        case _:
            return ChatProvider(base_url=url, api_key="k", options=options)


async def run_case(case: Case, endpoint: HostileEndpoint, stall: timedelta) -> list[str]:
    """What went wrong: nothing, where the request ended in an error that says why."""
    waits: list[float] = []
    events: list[Event] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    stall = stall if case.harm in STALLED else timedelta(seconds=DEADLINE_SECONDS)
    endpoint.requests.clear()
    endpoint.sent_bytes.clear()
    provider = open_provider(
        case.provider,
        endpoint.url(case.harm),
        CallOptions(emit=events.append, stall=stall, unstreamed=2 * stall, sleep=sleep),
    )
    frame = RequestParams(model="claude-opus-5", max_tokens=MAX_TOKENS)
    request = ModelRequest(frame, (Message("user", "the whole conversation"),))
    found: list[str] = []
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            await provider.send(request, ignore_delta if case.streams else None)
        found.append("was answered")
    except TimeoutError:
        found.append(f"had not ended after {DEADLINE_SECONDS:g} seconds")
    except ProviderError as error:
        if not isinstance(error, EXPECTED[case.harm]):
            found.append(f"ended in {type(error).__name__}: {error}"[:300])
    except Exception as error:
        found.append(f"raised {type(error).__name__}: {error}"[:300])
    finally:
        await provider.close()
    found += _check_traffic(case, endpoint, waits, events)
    return [f"{case.name}: {what}" for what in found]


def _check_traffic(
    case: Case, endpoint: HostileEndpoint, waits: Sequence[float], events: Sequence[Event]
) -> list[str]:
    found: list[str] = []
    sent, most = endpoint.sent_bytes[case.harm], limit_reply_bytes(MAX_TOKENS) + SLACK_BYTES
    if sent > most:
        found.append(f"took {sent:,} bytes")
    requests, allowed = endpoint.requests[case.harm], RETRIED.get(case.harm, 1)
    # The short limit of these may pass on a busy machine before the request is on its way.
    is_unsent = case.harm in STALLED and requests == 0
    if requests != allowed and not is_unsent:
        found.append(f"sent {requests} requests, not {allowed}")
    shown = [event.seconds for event in events if isinstance(event, RetryScheduled)]
    if len(shown) != len(waits) or sum(waits) > 60:
        found.append(f"waited {waits} and showed {shown}")
    if endpoint.strayed:
        found.append(f"sent {len(endpoint.strayed[0])} bytes to another host")
        endpoint.strayed.clear()
    return found


async def attack_providers(cases: Sequence[Case], stall: timedelta, line: Outcome, orders: Orders) -> None:
    async with serve_harm() as endpoint:
        for case in cases:
            for what in await run_case(case, endpoint, stall):
                line.wrong(what)
            line.count += 1
            orders.progress(line.name, line.count, len(cases), line.unit)


def run_endpoint(orders: Orders) -> list[Outcome]:
    """Every case in the long form; a part of them, of every harm and provider, in the shorter ones."""
    cases = list_cases()
    orders.random("endpoint").shuffle(cases)
    cases = cases[: orders.pick(24, len(cases), len(cases))]
    # Long enough for a busy machine to see an event that was sent.
    stall = timedelta(seconds=orders.pick(0.5, 0.5, 2.0))
    with outcome("endpoint", "requests") as line:
        asyncio.run(attack_providers(cases, stall, line, orders))
    return [line]
