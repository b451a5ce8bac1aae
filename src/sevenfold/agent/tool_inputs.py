"""What a model hands to a tool, read with care: an `InputError` says what was expected, so it can mend it."""

from __future__ import annotations

from collections.abc import Callable

from sevenfold.agent.tool import ToolOutput
from sevenfold.core.errors import SevenfoldError
from sevenfold.store.files.offload import run_blocking


async def call_in_thread(work: Callable[[], ToolOutput]) -> ToolOutput:
    """Do the work of a call in a thread; what goes wrong on purpose becomes an answer that says so."""
    try:
        return await run_blocking(work)
    except SevenfoldError as error:
        return error_output(str(error))


def error_output(reason: str) -> ToolOutput:
    return ToolOutput(reason, is_error=True)
