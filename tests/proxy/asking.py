"""Requests of agents in three wire formats, and the layers that they pass, without HTTP."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sevenfold.core.clock import SystemClock
from sevenfold.core.events import ignore_event
from sevenfold.core.usage import Usage
from sevenfold.proxy.layers import ProxyLayers
from sevenfold.proxy.memory import ProxyMemory
from sevenfold.proxy.profiles import find_profile
from sevenfold.proxy.state import StateStore
from sevenfold.proxy.turns import PreparedTurn, TurnRequest
from sevenfold.store.files.folder import Folder

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
SHELL: list[Any] = [{"name": "bash", "description": "runs a command", "input_schema": {"type": "object"}}]
UNSIGNED, SIGNED = "claude-sonnet-4-5", "claude-opus-5-5"


def open_layers(home: Path) -> ProxyLayers:
    """Layers whose state, memory and spills are in this folder."""
    home.mkdir(exist_ok=True)
    environ = {"SEVENFOLD_HOME": str(home), "HOME": str(home)}
    memory = ProxyMemory(clock=SystemClock(), environ=environ, emit=ignore_event)
    store = StateStore(Folder.open(home / "proxy", create=True))
    return ProxyLayers(store=store, memory=memory, memory_seconds=60.0)


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def call(number: int, command: str) -> dict[str, Any]:
    use = {"type": "tool_use", "id": f"toolu_{number}", "name": "bash", "input": {"command": command}}
    return {"role": "assistant", "content": [{"type": "text", "text": "I run it."}, use]}


def result(number: int, text: Any) -> dict[str, Any]:
    return user([{"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": text}])


def render(messages: Sequence[Any], *, model: str = UNSIGNED, **fields: Any) -> bytes:
    body = {"model": model, "max_tokens": 100, "messages": list(messages), "tools": SHELL, **fields}
    return json.dumps(body).encode()


class Asker:
    """An agent that sends requests, and sees what became of them."""

    def __init__(
        self, layers: ProxyLayers, project: Path, agent: str = "mini-swe-agent", key: str = "sk-1"
    ) -> None:
        project.mkdir(exist_ok=True)
        self.layers, self.project, self.agent, self.key = layers, project, agent, key
        self.at = NOW

    def prepare(self, body: bytes, path: str = "/v1/messages", **headers: str) -> PreparedTurn:
        profile = find_profile(self.agent)
        assert profile is not None
        self.at += timedelta(seconds=20)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        turn = TurnRequest(
            path=path,
            headers=named,
            body=body,
            client=self.layers.store.identify(self.key, "test/1"),
            profile=profile,
            project=str(self.project),
            at=self.at,
        )
        return self.layers.prepare(turn)

    def send(self, body: bytes, path: str = "/v1/messages", *, tokens: int = 1_000, **headers: str) -> Any:
        """What is forwarded, parsed; the request is answered with a call."""
        prepared = self.prepare(body, path, **headers)
        self.layers.answered(prepared, Usage(fresh=tokens, output=10), is_ended=False)
        return json.loads(prepared.body)
