"""Answers the messages of a client, one at a time, whatever they came through.

A `Connection` remembers the version of a handshake and nothing else; a request of 2026-07-28 brings its own.

`ActiveCalls` are the requests that are under way: progress while one runs, and cancellation. A call that is
cancelled runs to its end, because nothing that a tool does takes long or can be left half done. Its answer is
dropped, as the protocol wants.
"""

from __future__ import annotations

from threading import Event, Lock, Thread

from sevenfold.core import __version__
from sevenfold.integrations.mcp_server.catalog import (
    INDEX_URI,
    INSTRUCTIONS,
    MARKDOWN,
    MCP_PROMPTS,
    MCP_TOOLS,
    MEMORY_URI_PREFIX,
    check_arguments,
    find_mcp_prompt,
    find_mcp_tool,
    list_templates,
)
from sevenfold.integrations.mcp_server.protocol import (
    HANDSHAKE_VERSIONS,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    STATELESS_VERSIONS,
    RpcError,
    RpcMessage,
    check_envelope,
    choose_version,
    cut_page,
    is_stateless,
    make_error,
    make_notification,
    make_result,
    read_params,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from sevenfold.integrations.mcp_server.backend import McpBackend
    from sevenfold.integrations.mcp_server.protocol import RpcId, Wire

    Handler: TypeAlias = Callable[[Wire, str], Wire]
    Notify: TypeAlias = Callable[[Wire], None]
    Pause: TypeAlias = Callable[[Event], bool]

MAX_ANSWER_CHARS = 60_000
"""Of one result. Agents cut a longer one themselves, or refuse it."""

_HANDSHAKE_ONLY = ("ping",)


class HandshakeState:
    """What a connection has agreed on."""

    def __init__(self) -> None:
        self.version: str | None = None
        """None until `initialize` was answered."""


class McpDispatcher:
    """The methods of the server."""

    def __init__(self, backend: McpBackend) -> None:
        self._backend = backend
        self._methods: dict[str, Handler] = {
            "ping": lambda _params, _version: {},
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
        }

    def report(self, problem: str) -> None:
        """Tell whoever reads the log of the agent."""
        self._backend.report(problem)

    def answer(self, message: RpcMessage, state: HandshakeState) -> Wire:
        """The response to a request, which may be an error."""
        try:
            return self._answer(message, state)
        except RpcError as error:
            return make_error(message.id, error)
        except Exception as bug:  # a request must not end the server
            self._backend.report(f"{message.method[:80]}: {type(bug).__name__}: {bug}")
            return make_error(
                message.id, RpcError(INTERNAL_ERROR, "the server failed; see its standard error")
            )

    def _answer(self, message: RpcMessage, state: HandshakeState) -> Wire:
        if is_stateless(message):
            version = check_envelope(message)
            if message.method == "server/discover":
                return make_result(message, _discover(), version=version, server=_server(version))
            result = self._find(message, allowed=message.method not in _HANDSHAKE_ONLY)
        elif message.method == "initialize":
            version = state.version = choose_version(message.params.get("protocolVersion"))
            return make_result(message, _initialize(version), version=version, server=_server(version))
        else:
            result = self._find(message, allowed=True)
            if state.version is None and message.method != "ping":
                raise RpcError(INVALID_REQUEST, f"{message.method} came before initialize")
            version = state.version or HANDSHAKE_VERSIONS[-1]
        return make_result(message, result(message.params, version), version=version, server=_server(version))

    def _find(self, message: RpcMessage, *, allowed: bool) -> Handler:
        handler = self._methods.get(message.method) if allowed else None
        if handler is None:
            raise RpcError(METHOD_NOT_FOUND, "Method not found", message.method[:200])
        return handler

    def _list_tools(self, params: Wire, version: str) -> Wire:
        page = cut_page([tool.listed(version) for tool in MCP_TOOLS], params.get("cursor"))
        return {"tools": list(page.items)}

    def _call_tool(self, params: Wire, version: str) -> Wire:
        del version
        name = params.get("name")
        tool = find_mcp_tool(name) if isinstance(name, str) else None
        if tool is None:
            known = ", ".join(tool.name for tool in MCP_TOOLS)
            raise RpcError(INVALID_PARAMS, f"there is no tool {str(name)[:80]!r}; there are {known}")
        given = read_params(params.get("arguments"), "arguments")
        wrong = check_arguments(tool, given)
        if wrong:
            return _text_result(wrong, is_error=True)
        answer = self._backend.run(tool.name, given)
        return _text_result(answer.text, is_error=answer.is_error)

    def _list_resources(self, params: Wire, version: str) -> Wire:
        from urllib.parse import quote

        index: Wire = {
            "uri": INDEX_URI,
            "name": "MEMORY.md",
            "description": "The index of what is remembered of this project.",
            "mimeType": MARKDOWN,
        }
        if version >= "2025-06-18":
            index["title"] = "Memory index"
        memories: list[Wire] = [
            {
                "uri": MEMORY_URI_PREFIX + quote(memory.key),
                "name": memory.key,
                "description": memory.description,
                "mimeType": MARKDOWN,
            }
            for memory in self._backend.list_memories()
        ]
        resources = [index, *memories]
        page = cut_page(resources, params.get("cursor"))
        rest: Wire = {"nextCursor": page.next_cursor} if page.next_cursor else {}
        return {"resources": list(page.items), **rest}

    def _list_templates(self, params: Wire, version: str) -> Wire:
        return {"resourceTemplates": list(cut_page(list_templates(version), params.get("cursor")).items)}

    def _read_resource(self, params: Wire, version: str) -> Wire:
        from urllib.parse import unquote

        uri = params.get("uri")
        if not isinstance(uri, str):
            raise RpcError(INVALID_PARAMS, "uri is missing; expected the address of a resource")
        text: str | None = None
        if uri == INDEX_URI:
            text = self._backend.read_index()
        elif uri.startswith(MEMORY_URI_PREFIX):
            text = self._backend.read_memory(unquote(uri.removeprefix(MEMORY_URI_PREFIX)))
        if text is None:
            code = INVALID_PARAMS if version in STATELESS_VERSIONS else RESOURCE_NOT_FOUND
            raise RpcError(
                code, "there is no such resource; list them with resources/list", {"uri": uri[:500]}
            )
        return {"contents": [{"uri": uri, "mimeType": MARKDOWN, "text": _bounded(text)}]}

    def _list_prompts(self, params: Wire, version: str) -> Wire:
        page = cut_page([prompt.listed(version) for prompt in MCP_PROMPTS], params.get("cursor"))
        return {"prompts": list(page.items)}

    def _get_prompt(self, params: Wire, version: str) -> Wire:
        del version
        name = params.get("name")
        prompt = find_mcp_prompt(name) if isinstance(name, str) else None
        if prompt is None:
            raise RpcError(INVALID_PARAMS, f"there is no prompt {str(name)[:80]!r}")
        given = read_params(params.get("arguments"), "arguments")
        value = given.get(prompt.argument) if prompt.argument else ""
        arguments: Wire = {prompt.argument: value} if prompt.argument else {}
        tool = find_mcp_tool(prompt.operation)
        wrong = check_arguments(tool, arguments) if tool else "there is no such tool"
        if wrong:
            raise RpcError(INVALID_PARAMS, wrong)
        answer = self._backend.run(prompt.operation, arguments)
        text = f"{prompt.lead.format(value=value)}\n\n{answer.text}"
        return {
            "description": prompt.description,
            "messages": [{"role": "user", "content": {"type": "text", "text": _bounded(text)}}],
        }


def _capabilities() -> Wire:
    """Lists are constant or asked for again, so that nobody is told of changes."""
    return {"tools": {}, "resources": {}, "prompts": {}}


def _server(version: str) -> Wire:
    server: Wire = {"name": "sevenfold", "version": __version__}
    if version >= "2025-06-18":
        server["title"] = "Sevenfold"
    return server


def _initialize(version: str) -> Wire:
    return {
        "protocolVersion": version,
        "capabilities": _capabilities(),
        "serverInfo": _server(version),
        "instructions": INSTRUCTIONS,
    }


def _discover() -> Wire:
    return {
        "supportedVersions": list(STATELESS_VERSIONS),
        "capabilities": _capabilities(),
        "instructions": INSTRUCTIONS,
    }


def _text_result(text: str, *, is_error: bool) -> Wire:
    """Text alone: with structured content beside it, some agents would show that to the model instead."""
    result: Wire = {"content": [{"type": "text", "text": _bounded(text)}]}
    if is_error:
        result["isError"] = True
    return result


def _bounded(text: str) -> str:
    # Half of a character pair has no UTF-8, and some clients drop a message that has one.
    text = text.encode("utf-8", "replace").decode()
    if len(text) <= MAX_ANSWER_CHARS:
        return text
    cut = text.rfind("\n", MAX_ANSWER_CHARS // 2, MAX_ANSWER_CHARS)
    kept = text[: cut if cut > 0 else MAX_ANSWER_CHARS]
    return f"{kept}\n[{len(text) - len(kept):,} more characters were left out; ask for less at once]"


_PROGRESS_SECONDS = 1.0
"""Between two signs of life. Clients wait longer for a call that shows some."""


def pause_progress(done: Event) -> bool:
    """Wait until the next sign of life is due; whether the call ended meanwhile."""
    return done.wait(_PROGRESS_SECONDS)


class ActiveCalls:
    """The requests of one connection that have no answer yet."""

    def __init__(self, pause: Pause = pause_progress) -> None:
        self._pause = pause
        self._lock = Lock()
        self._cancelled: dict[RpcId, bool] = {}

    def begin(self, rpc_id: RpcId) -> bool:
        """Whether the id is free; it is taken from now on."""
        with self._lock:
            if rpc_id in self._cancelled:
                return False
            self._cancelled[rpc_id] = False
            return True

    def cancel(self, rpc_id: RpcId) -> None:
        with self._lock:
            if rpc_id in self._cancelled:
                self._cancelled[rpc_id] = True

    def forget(self, rpc_id: RpcId) -> None:
        """The id is free again."""
        self._end(rpc_id)

    def run(self, message: RpcMessage, work: Callable[[], Wire], notify: Notify) -> Wire | None:
        """The answer of a request that has begun; None if it was cancelled."""
        if self._is_cancelled(message.id):
            self._end(message.id)
            return None
        token = message.progress_token
        answer = work() if token is None else self._run_watched(token, message, work, notify)
        return None if self._end(message.id) else answer

    def _run_watched(
        self, token: str | int, message: RpcMessage, work: Callable[[], Wire], notify: Notify
    ) -> Wire:
        done = Event()
        name = message.params.get("name")
        what = f"{name[:80]} is running" if isinstance(name, str) else "running"

        def show(step: int) -> None:
            if not self._is_cancelled(message.id):
                params = {"progressToken": token, "progress": step, "message": what}
                notify(make_notification("notifications/progress", params))

        def watch() -> None:
            step = 0
            while not self._pause(done):
                step += 1
                show(step)

        show(0)
        watching = Thread(target=watch, daemon=True)
        watching.start()
        try:
            return work()
        finally:
            # No progress after the answer: the token is free again then.
            done.set()
            watching.join()

    def _is_cancelled(self, rpc_id: RpcId) -> bool:
        with self._lock:
            return self._cancelled.get(rpc_id, False)

    def _end(self, rpc_id: RpcId) -> bool:
        """Whether it was cancelled; the id is free again."""
        with self._lock:
            return self._cancelled.pop(rpc_id, False)


def refuse_repeated(rpc_id: RpcId) -> Wire:
    """The answer to a request whose id belongs to one that is under way."""
    return make_error(rpc_id, RpcError(INVALID_REQUEST, f"the id {rpc_id!r:.80} is in use; use another one"))
