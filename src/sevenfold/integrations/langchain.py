"""The layers under a chat model of LangChain, with one new line:

    with attach_model(ChatAnthropic(model="claude-opus-5-5"), project=".") as model:
        model.invoke("What does this repository do?")

`ChatAnthropic`, `ChatOpenAI` and what is made of them (`AzureChatOpenAI`) make their clients themselves, and
`ChatAnthropic` takes none. So the clients are found in the model by what they are, and not by a name, and a
copy of the model gets them attached (see `attached_client`). The model that was handed in goes on as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from sevenfold.core.errors import InputError
from sevenfold.core.events import Emit, ignore_event
from sevenfold.integrations.attached_client import AttachedClient, attach, is_sdk_client

ModelT = TypeVar("ModelT")

_RESOURCES = {"client": "root_client", "async_client": "root_async_client"}
"""Fields of `ChatOpenAI` that hold a part of a client, and the field of that client."""


def attach_model(
    model: ModelT,
    *,
    project: str | Path | None = ".",
    settings: Mapping[str, Mapping[str, object]] | None = None,
    emit: Emit = ignore_event,
    environ: Mapping[str, str] | None = None,
    context: bool = False,
    clearable: Mapping[str, bool] | None = None,
) -> AttachedModel[ModelT]:
    """The layers under this model: `with attach_model(model) as model`, or `async with`. The arguments are
    those of `attach`."""
    clients = dict(_find_clients(model))
    if not clients or not hasattr(model, "model_copy"):
        raise InputError(
            "attach_model(model) takes a ChatAnthropic or ChatOpenAI of LangChain that has its key, not a "
            f"{type(model).__name__}; for others start `sevenfold proxy`, and give them its address as "
            "base_url"
        )
    attached = {
        name: attach(
            client,
            project=project,
            settings=settings,
            emit=emit,
            environ=environ,
            context=context,
            clearable=clearable,
        )
        for name, client in clients.items()
    }
    return AttachedModel(model, attached)


class AttachedModel(Generic[ModelT]):
    """A chat model on top of the layers; `open` gives it without a block, until `close`, or `await aclose()`
    where it was asked by `ainvoke` or `astream`."""

    def __init__(self, model: ModelT, clients: Mapping[str, AttachedClient[Any]]) -> None:
        self._model, self._clients = model, clients

    def open(self) -> ModelT:
        """A copy of the model, of the same type."""
        copy = cast("Any", self._model).model_copy()
        fields: dict[str, Any] = copy.__dict__
        fields |= {name: client.open() for name, client in self._clients.items()}
        for name, of_client in _RESOURCES.items():
            if of_client in self._clients:
                fields[name] = fields[of_client].chat.completions
        return copy

    def close(self) -> None:
        """Write what is left of what `invoke` and `stream` asked. What `ainvoke` asked was written with each
        answer."""
        for client in self._clients.values():
            if not client.is_async:
                client.close()

    async def aclose(self) -> None:
        for client in self._clients.values():
            if client.is_async:
                closing: Any = client.close()
                await closing
        self.close()

    def __enter__(self) -> ModelT:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> ModelT:
        return self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _find_clients(model: object) -> Iterator[tuple[str, Any]]:
    """Clients of an SDK that a model has in a field, or makes when they are first asked for."""
    found = dict(vars(model)) if hasattr(model, "__dict__") else {}
    for of_model in type(model).__mro__:
        for name, value in vars(of_model).items():
            if isinstance(value, cached_property) and name.endswith("client") and name not in found:
                found[name] = getattr(model, name)
    yield from ((name, value) for name, value in found.items() if is_sdk_client(value))
