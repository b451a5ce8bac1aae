"""The Anthropic memory tool (`memory_20250818`) served from a project's memories:

    with MemoryDir.for_project(".") as memory:
        runner = client.beta.messages.tool_runner(tools=[memory_tool(memory)], ...)

What the model keeps lies in the same folder as everything else that is remembered of the project: with a
history, without secrets, and for a person to review.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from sevenfold.integrations.memory_commands import MemoryCommands
from sevenfold.store.files.offload import run_blocking
from sevenfold.store.memory.directory import MemoryDir

if TYPE_CHECKING:
    from anthropic.lib.tools import BetaAsyncBuiltinFunctionTool, BetaBuiltinFunctionTool
    from anthropic.types.beta import BetaMemoryTool20250818Param


def memory_tool(memory: MemoryDir, *, session: str = "", is_trusted: bool = False) -> BetaBuiltinFunctionTool:
    """A tool for `Anthropic`. It does not close the memories it was given.

    With `is_trusted` the caller vouches that nothing foreign enters its conversations.
    """
    # Here, since who does without the SDK does without its libraries.
    from anthropic.lib.tools import BetaBuiltinFunctionTool

    commands = MemoryCommands(memory, session, is_trusted)

    class MemoryTool(BetaBuiltinFunctionTool):
        def to_dict(self) -> BetaMemoryTool20250818Param:
            return _declared()

        def call(self, input: object) -> str:  # noqa: A002 - the SDK's name for it
            return _answer(commands, input)

    return MemoryTool()


def async_memory_tool(
    memory: MemoryDir, *, session: str = "", is_trusted: bool = False
) -> BetaAsyncBuiltinFunctionTool:
    """The same for `AsyncAnthropic`."""
    from anthropic.lib.tools import BetaAsyncBuiltinFunctionTool

    commands = MemoryCommands(memory, session, is_trusted)

    class MemoryTool(BetaAsyncBuiltinFunctionTool):
        def to_dict(self) -> BetaMemoryTool20250818Param:
            return _declared()

        async def call(self, input: object) -> str:  # noqa: A002 - the SDK's name for it
            return await run_blocking(lambda: _answer(commands, input))

    return MemoryTool()


def _declared() -> BetaMemoryTool20250818Param:
    return {"type": "memory_20250818", "name": "memory"}


def _answer(commands: MemoryCommands, given: object) -> str:
    from anthropic.lib.tools import ToolError

    answer = commands.run(cast("Mapping[str, object]", given) if isinstance(given, Mapping) else {})
    if answer.is_error:
        raise ToolError(answer.text)
    return answer.text
