"""A model from a GGUF file, run on this machine.

llama.cpp serves it on the loopback interface, and it is asked like any server that is compatible with OpenAI.
It costs nothing but time. `open_exact_estimator` counts tokens offline with a tokenizer from a file.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Protocol, cast

from sevenfold.core.errors import InputError, SettingsError, describe_missing
from sevenfold.core.json import replace_lone_surrogates
from sevenfold.core.models import LOCAL_WINDOW_TOKENS, Model
from sevenfold.core.requests import Capabilities, Dialect, ModelRequest, ModelResponse, choose_capabilities
from sevenfold.core.tokens.estimation import EXACT_ESTIMATOR_NAME, TokenEstimator, weigh_exactly
from sevenfold.providers.openai import ChatProvider
from sevenfold.providers.provider import OnDelta
from sevenfold.providers.reply_limits import DEFAULT_CALL_OPTIONS, CallOptions

GGUF_MAGIC = b"GGUF"

LOCAL_STALL = timedelta(hours=1)
"""A long prompt takes a small machine that long to read, and no stranger is on the other side."""


class _ModelParams(Protocol):
    path: str


class _CpuParams(Protocol):
    n_threads: int
    poll: int


class _Params(Protocol):
    """What we set of the library's parameters."""

    model: _ModelParams
    cpuparams: _CpuParams
    n_ctx: int
    hostnames: list[str]
    port: int
    api_keys: list[str]
    ui: bool
    verbosity: int
    warmup: bool


class ModelServer(Protocol):
    """A model that is being served."""

    @property
    def listening_address(self) -> str: ...


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A file that is being served. The library ends its server with the last reference to it."""

    server: ModelServer
    chat: ChatProvider


class LocalProvider:
    """Asks the model in a GGUF file. The file is loaded when the first request is sent, or by `load`."""

    def __init__(
        self,
        path: Path,
        *,
        window_tokens: int = LOCAL_WINDOW_TOKENS,
        threads: int | None = None,
        options: CallOptions = DEFAULT_CALL_OPTIONS,
    ) -> None:
        self._path, self._window_tokens, self._threads = path, window_tokens, threads
        self._options = options
        self._loading: asyncio.Task[LoadedModel] | None = None

    @property
    def dialect(self) -> Dialect:
        return "openai"

    def capabilities(self, model: Model) -> Capabilities:
        return choose_capabilities(model, self.dialect)

    async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        loaded = await self.load()
        return await loaded.chat.send(request, on_delta)

    async def load(self) -> LoadedModel:
        """Load the file, if that was not done; takes seconds, and as much memory as the file is large."""
        loading = self._loading
        if loading is None or (loading.done() and (loading.cancelled() or loading.exception())):
            loading = self._loading = asyncio.create_task(self._load(), name=f"load {self._path.name}")
        # What was begun cannot be stopped: a caller that gives up leaves it to the next one.
        return await asyncio.shield(loading)

    async def close(self) -> None:
        loading, self._loading = self._loading, None
        if loading is not None:
            await asyncio.wait({loading})
            if not loading.cancelled() and loading.exception() is None:
                await loading.result().chat.close()

    async def _load(self) -> LoadedModel:
        key = secrets.token_urlsafe()
        server = await asyncio.to_thread(self._start, key)
        options = replace(self._options, stall=LOCAL_STALL, unstreamed=2 * LOCAL_STALL)
        chat = ChatProvider(base_url=f"{server.listening_address}/v1", api_key=key, options=options)
        return LoadedModel(server, chat)

    def _start(self, key: str) -> ModelServer:
        """Blocks while the file is read. Nobody without the key is answered, on this machine neither."""
        _check(self._path)
        try:
            import xllamacpp  # pyright: ignore[reportMissingTypeStubs]
        except ImportError as error:
            raise InputError(describe_missing("a GGUF file", ["xllamacpp"], "local")) from error
        params = cast("_Params", xllamacpp.CommonParams())  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        params.model.path = str(self._path)
        params.n_ctx = self._window_tokens
        params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [key]
        params.cpuparams.n_threads = self._threads or _threads()
        # Threads that spin while they wait for one another make a busy machine crawl.
        params.cpuparams.poll = 0
        params.ui, params.warmup, params.verbosity = False, False, -1
        try:
            return cast("ModelServer", xllamacpp.Server(params))  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        except RuntimeError as error:
            raise InputError(
                f"{self._path} cannot be loaded as a model with a window of {self._window_tokens:,} tokens: "
                f"{error}; is it whole, and is there memory for it?"
            ) from error


def _threads() -> int:
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def _check(path: Path) -> None:
    """A file that is not there, or is something else, said in our words: the library's say less."""
    try:
        with path.open("rb") as file:
            magic = file.read(len(GGUF_MAGIC))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; name a GGUF file") from error
    if magic != GGUF_MAGIC:
        raise InputError(f"{path} is not a GGUF file: it begins with {magic!r}; name a GGUF file")


def open_exact_estimator(path: Path) -> TokenEstimator:
    """Counts as this `tokenizer.json` says. Bills do not correct it: what differs is the model's template."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise SettingsError(
            describe_missing("window.estimator = 'exact'", ["tokenizers"], "search")
        ) from error
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises no class of its own
        raise SettingsError(
            f"window.tokenizer = '{path}' cannot be read: {error}; name the tokenizer.json of your model"
        ) from error

    def count(text: str) -> float:
        return len(tokenizer.encode(replace_lone_surrogates(text), add_special_tokens=False).ids)

    return TokenEstimator(EXACT_ESTIMATOR_NAME, partial(weigh_exactly, count=count), calibrates=False)
