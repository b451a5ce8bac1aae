"""Sevenfold: a bounded context, a warm prompt cache and a memory that lasts, for LLM agents.

From the bottom up; a package imports only from those before it (`pyproject.toml` has the exact rule):

- `core/`: values and pure functions over them.
- `store/`: everything on disk.
- `providers/`: model APIs.
- `layers/`: the seven layers.
- `team/`: shared memory for a team, client and server.
- `simulator/`: a local Messages API that bills as the provider does.
- `session/`: what a loop calls before and after each model call.
- `resident/`: a process that keeps memories and indexes loaded for other agents.
- `integrations/`: the layers under other people's agent loops.
- `proxy/`: a proxy that keeps the bill of any agent.
- `replay/`: what recorded sessions cost.
- `agent/`: the terminal agent.
- `ui/`: a page of this machine with all of it.
- `testing`: the public interface of the simulator, for tests.
- `cli/`, `__main__`: the command line.

`_moved` keeps old import paths of public names.
"""

from __future__ import annotations

from sevenfold._moved import install_finder
from sevenfold.core import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sevenfold.core.messages import Message, Text, Thinking, ToolResult, ToolUse
    from sevenfold.core.requests import ModelRequest, ModelResponse, RequestParams
    from sevenfold.core.usage import Usage
    from sevenfold.integrations.attached_client import attach
    from sevenfold.layers.memory.recall.finder import recall
    from sevenfold.providers.provider import Provider
    from sevenfold.session.blocking import BlockingSession
    from sevenfold.session.session import Session
    from sevenfold.store.memory.directory import MemoryDir

__all__ = [
    "BlockingSession",
    "MemoryDir",
    "Message",
    "ModelRequest",
    "ModelResponse",
    "Provider",
    "RequestParams",
    "Session",
    "Text",
    "Thinking",
    "ToolResult",
    "ToolUse",
    "Usage",
    "__version__",
    "attach",
    "recall",
]

_FOUND_IN = {
    "BlockingSession": "sevenfold.session.blocking",
    "MemoryDir": "sevenfold.store.memory.directory",
    "Message": "sevenfold.core.messages",
    "ModelRequest": "sevenfold.core.requests",
    "ModelResponse": "sevenfold.core.requests",
    "Provider": "sevenfold.providers.provider",
    "RequestParams": "sevenfold.core.requests",
    "Session": "sevenfold.session.session",
    "Text": "sevenfold.core.messages",
    "Thinking": "sevenfold.core.messages",
    "ToolResult": "sevenfold.core.messages",
    "ToolUse": "sevenfold.core.messages",
    "Usage": "sevenfold.core.usage",
    "attach": "sevenfold.integrations.attached_client",
    "recall": "sevenfold.layers.memory.recall.finder",
}
"""What `from sevenfold import …` offers. Loaded when it is asked for: importing the package stays light."""


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _FOUND_IN:
        raise AttributeError(f"module 'sevenfold' has no attribute {name!r}")
    return getattr(import_module(_FOUND_IN[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


install_finder()
