"""The layers under agents that somebody else wrote: all conversations, and what is done around each request.

`ProxyLayers.prepare` turns a request of a run into the one that is sent (`turns`), and `answered` writes down
what came of it. When a turn has ended, it is searched for memories. A layer that
fails decides nothing in this request, and the ledger says so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from sevenfold.core.errors import StoreError
from sevenfold.core.json import Json
from sevenfold.core.prices import CATALOG, Catalog
from sevenfold.core.requests import choose_capabilities
from sevenfold.core.usage import Usage
from sevenfold.layers.memory.extraction.drafts import RecordedMessage
from sevenfold.proxy.bodies import RequestBody, UnfitBody, parse_body
from sevenfold.proxy.ledger import RequestTouch
from sevenfold.proxy.machine_text import PromptReader, strip_machine_text
from sevenfold.proxy.memory import ProxyMemory
from sevenfold.proxy.requests import DigestCache, describe_request
from sevenfold.proxy.state import StateStore
from sevenfold.proxy.turns import PreparedTurn, TurnRequest, TurnTools, TurnWork

MEMORY_SECONDS = 2.0
"""How long a request waits for what memory has to say; mostly it takes a few milliseconds."""

REFUSED_BEFORE = "provider: it refused a changed request of this conversation, which is left alone now"

ANSWER_SECONDS = 0.2
"""How long a request waits for the account of the one before, which is written as its response ends."""

_T = TypeVar("_T")


@dataclass(slots=True, kw_only=True)
class ProxyLayers:
    """The layers of all conversations. `prepare` and `answered` block; for any thread."""

    store: StateStore
    memory: ProxyMemory
    prompts: PromptReader = field(default_factory=PromptReader)
    catalog: Catalog = CATALOG
    memory_seconds: float = MEMORY_SECONDS
    learn_errors: list[str] = field(default_factory=list[str])
    """Why something was not looked through."""
    _digests: DigestCache = field(default_factory=DigestCache)
    _threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(8, thread_name_prefix="sevenfold-proxy-memory")
    )
    _learner: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="sevenfold-proxy-learner")
    )
    """For what no request waits for: it takes no thread from those that one waits for."""
    _unlearnt: dict[str, PreparedTurn] = field(default_factory=dict[str, PreparedTurn])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def prepare(self, turn: TurnRequest) -> PreparedTurn:
        """The request to send. Raises nothing that a client would notice: `UnfitBody` where it is to be
        forwarded as it came."""
        fields = parse_body(turn.body)
        facts = describe_request(turn.path, turn.headers, fields, turn.profile, digests=self._digests)
        if facts.purpose != "turn" or not turn.profile.layers:
            return PreparedTurn(body=turn.body, facts=facts, touch=RequestTouch())
        model = self.catalog.find(facts.model)
        capabilities = choose_capabilities(model, "anthropic" if facts.wire == "messages" else "openai")
        body = RequestBody.read(
            facts, fields, tag=turn.profile.moving_tag, moves=capabilities.rewrites_history
        )
        if not body.entries:
            raise UnfitBody("it has no messages")
        state = self.store.find(turn.client, facts, body.keys)
        if state.is_refused:
            touch = RequestTouch(conversation=state.name, failures=(REFUSED_BEFORE,))
            return PreparedTurn(body=turn.body, facts=facts, touch=touch)
        # The client may be faster than the account of its last request.
        state.is_answered.wait(ANSWER_SECONDS)
        with state.lock:
            state.is_answered.clear()
            self.store.refresh(state)
            tools = TurnTools(self.store, self.memory, self.submit, self.memory_seconds)
            work = TurnWork(
                tools=tools,
                turn=turn,
                facts=facts,
                model=model,
                capabilities=capabilities,
                body=body,
                state=state,
            )
            return work.run()

    def answered(self, prepared: PreparedTurn, usage: Usage | None, *, is_ended: bool) -> None:
        """A request was answered; `is_ended`: without a call, so that the turn is over."""
        state = prepared.state
        if state is None:
            return
        with state.lock:
            if usage is not None and usage.prompt:
                with suppress(StoreError):
                    line: dict[str, Json] = {"kind": "answer", "tokens": usage.prompt}
                    self.store.record(state, line, is_durable=False)
        state.is_answered.set()
        turn = replace(prepared.turn, body=b"") if prepared.turn else None
        with self._lock:
            # Bodies may have many megabytes, and an agent that was killed never ends its turn.
            self._unlearnt[state.name] = replace(prepared, body=b"", turn=turn)
        if is_ended:
            self._learner.submit(self._learn_once, state.name)

    def finish(self) -> None:
        """Look through what is left when the agent has ended."""
        with self._lock:
            left, self._unlearnt = list(self._unlearnt.values()), {}
        for prepared in left:
            self._learn(prepared, is_end=True)

    def _learn_once(self, name: str) -> None:
        with self._lock:
            prepared = self._unlearnt.pop(name, None)
        if prepared is not None:
            self._learn(prepared, is_end=False)

    def close(self) -> None:
        self._learner.shutdown(wait=True)
        self._threads.shutdown(wait=True)
        self.memory.close()
        self.store.close()

    def warm_up(self, project: str) -> None:
        """Begin to read what the first prompt in a project would wait for."""
        self.submit(lambda: self.memory.warm_up(project))

    def submit(self, work: Callable[[], _T]) -> Future[_T]:
        return self._threads.submit(work)

    def _learn(self, prepared: PreparedTurn, *, is_end: bool) -> None:
        state, turn = prepared.state, prepared.turn
        if state is None or turn is None or "extraction" not in turn.profile.layers:
            return
        with state.lock:
            pairs = list(zip(state.keys, state.messages, strict=False))
        said = strip_machine_text((message for _, message in pairs), turn.profile)
        try:
            said = self.prompts.read(Path(turn.project)).strip(said)
            history = [RecordedMessage(key, message) for (key, _), message in zip(pairs, said, strict=True)]
            self.memory.learn(turn.project, state.name, history, is_end=is_end)
        except Exception as error:
            self.learn_errors.append(f"{type(error).__name__}: {error}")
