"""The Anthropic memory tool (`memory_20250818`) served from a project's memories:

    with MemoryDir.for_project(".") as memory:
        runner = client.beta.messages.tool_runner(tools=[MemoryTool(memory)], ...)

What the model keeps lies in the same folder as everything else that is remembered of the project: with a
history, without secrets, and for a person to review.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anthropic.lib.tools import (
    BetaAbstractMemoryTool,
    BetaAsyncAbstractMemoryTool,
    BetaFunctionToolResultType,
    ToolError,
)

from sevenfold.integrations.memory_commands import MemoryCommands
from sevenfold.store.memory_dir import MemoryDir
from sevenfold.store.offload import durably

if TYPE_CHECKING:
    from anthropic import BaseModel
    from anthropic.types.beta import (
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )


class MemoryTool(BetaAbstractMemoryTool):
    """For `Anthropic`. It does not close the memories it was given."""

    def __init__(self, memory: MemoryDir, *, session: str = "", is_trusted: bool = False) -> None:
        super().__init__()
        self._commands = MemoryCommands(memory, session, is_trusted)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> BetaFunctionToolResultType:
        return self._run(command)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> BetaFunctionToolResultType:
        return self._run(command)

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> BetaFunctionToolResultType:
        return self._run(command)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> BetaFunctionToolResultType:
        return self._run(command)

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> BetaFunctionToolResultType:
        return self._run(command)

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> BetaFunctionToolResultType:
        return self._run(command)

    def _run(self, command: BaseModel) -> str:
        return _answer(self._commands, command)


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """For `AsyncAnthropic`."""

    def __init__(self, memory: MemoryDir, *, session: str = "", is_trusted: bool = False) -> None:
        super().__init__()
        self._commands = MemoryCommands(memory, session, is_trusted)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> BetaFunctionToolResultType:
        return await self._run(command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> BetaFunctionToolResultType:
        return await self._run(command)

    async def str_replace(
        self, command: BetaMemoryTool20250818StrReplaceCommand
    ) -> BetaFunctionToolResultType:
        return await self._run(command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> BetaFunctionToolResultType:
        return await self._run(command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> BetaFunctionToolResultType:
        return await self._run(command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> BetaFunctionToolResultType:
        return await self._run(command)

    async def _run(self, command: BaseModel) -> str:
        return await durably(lambda: _answer(self._commands, command))


def _answer(commands: MemoryCommands, command: BaseModel) -> str:
    answer = commands.run(command.to_dict())
    if answer.is_error:
        raise ToolError(answer.text)
    return answer.text
