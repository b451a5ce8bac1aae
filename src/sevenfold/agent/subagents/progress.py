"""What an agent is doing, in a line of three to five words, at intervals.

Asked of the agent itself on its warm prefix, or of a cheap model that is shown the last rounds: whichever
costs less. Nothing is asked while nothing has changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.side_model import (
    ONLOOKER_PROMPT,
    SideCallFacts,
    choose_side_model,
    estimate_messages_tokens,
    estimate_plain_tokens,
    find_cheapest_model,
    render_tail,
)
from sevenfold.core.catalog import Catalog
from sevenfold.core.errors import SevenfoldError
from sevenfold.core.events import Emit, ProgressSkipped
from sevenfold.core.messages import Message
from sevenfold.core.models import Model
from sevenfold.core.requests import ModelRequest, RequestParams
from sevenfold.core.text.fences import fence_text
from sevenfold.layers.forks.policy import ForkBrief

PROGRESS_KIND = "progress"
"""Whose call it is, for the bill."""

PROGRESS_OUTPUT_TOKENS = 64
"""Five words take ten; the rest is for models that clear their throat."""

_TAIL_MESSAGES = 6
"""Three rounds: what an agent is doing, not what it has done."""

MAX_PROGRESS_CHARS = 60

_ASK = (
    "Say in 3 to 5 words, in the present tense, what is being done right now; name the file or the function. "
    "Answer with these words alone, and call no tool. For example: Reading store/mailbox.py"
)


def parse_progress_line(answer: str) -> str:
    """The words themselves; empty where there are none to show."""
    first = next((line.strip() for line in answer.splitlines() if line.strip()), "")
    words = " ".join(first.strip("\"'`*. ").split())
    return words if len(words) <= MAX_PROGRESS_CHARS else f"{words[: MAX_PROGRESS_CHARS - 1]}…"


class ProgressReporter:
    """Says what agents are doing."""

    def __init__(self, catalog: Catalog, emit: Emit) -> None:
        self._catalog, self._emit = catalog, emit
        self._seen: dict[str, int] = {}
        """How much each agent had said when it was last asked."""

    async def watch(
        self, name: str, find: Callable[[], Agent | None], say: Callable[[str], None], every: timedelta
    ) -> None:
        """Say it again and again, until cancelled."""
        while True:
            await asyncio.sleep(every.total_seconds())
            agent = find()
            line = await self.ask(name, agent) if agent is not None else ""
            if line:
                say(line)

    async def ask(self, name: str, agent: Agent) -> str:
        """What it is doing; empty where nothing has changed since, or nothing can be said."""
        said = len(agent.session.history)
        if said == self._seen.get(name) or not said:
            return ""
        self._seen[name] = said
        parent, day = agent.session.parent, agent.place.clock.now().date()
        tail = render_tail(parent.messages, _TAIL_MESSAGES)
        own = self._catalog.find(parent.frame.model)
        cheap = find_cheapest_model(own, self._catalog, day)
        pricing = SideCallFacts(
            prefix_tokens=estimate_messages_tokens(parent.messages),
            tail_tokens=estimate_plain_tokens(tail),
            own=own,
            cheap=cheap,
            day=day,
            output_tokens=PROGRESS_OUTPUT_TOKENS,
        )
        try:
            if cheap is not None and choose_side_model(pricing) == "cheap":
                return parse_progress_line(await _ask_cheap(agent, cheap, tail))
            brief = ForkBrief(kind=PROGRESS_KIND, directive=_ASK, max_tokens=PROGRESS_OUTPUT_TOKENS)
            return parse_progress_line((await agent.session.run_fork(brief)).text)
        except SevenfoldError as error:
            self._emit(ProgressSkipped(name, str(error)))
            return ""


async def _ask_cheap(agent: Agent, model: Model, tail: str) -> str:
    frame = RequestParams(model=model.name, max_tokens=PROGRESS_OUTPUT_TOKENS, system=ONLOOKER_PROMPT)
    asked = Message("user", f"{fence_text('steps', tail)}\n\n{_ASK}")
    return (await agent.provider.send(ModelRequest(frame, (asked,), who=PROGRESS_KIND))).text
