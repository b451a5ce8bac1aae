"""What the input line and its menus show of characters that hide or turn round what stands beside them."""

from __future__ import annotations

import asyncio
import io
import re
from pathlib import Path

import pytest
from prompt_toolkit import PromptSession
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.layout.screen import Char

from sevenfold.agent.tui.completion import ProjectFiles, list_completions
from sevenfold.agent.tui.prompt_input import BufferedOutput, make_prompt_output


@pytest.fixture(autouse=True)
def own_mappings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Char, "display_mappings", dict(Char.display_mappings))


def test_a_file_name_that_is_completed_cannot_turn_its_letters_round(tmp_path: Path) -> None:
    (tmp_path / "photo\u202egpj.sh").touch()
    (found,) = list_completions("@pho", ProjectFiles(tmp_path))
    shown = asyncio.run(_show(f"{found.text} a\u2066b\U000e0041\r"))
    assert "photo<202e>gpj.sh" in shown
    assert not any(item in shown for item in "\u202e\u2066\U000e0041")


class _Terminal(io.StringIO):
    encoding = "utf-8"

    def fileno(self) -> int:
        return 1


async def _show(keys: str) -> str:
    """What stands on a terminal, without colours, while somebody types."""
    written = _Terminal()
    with create_pipe_input() as pipe:
        pipe.send_text(keys)
        session: PromptSession[str] = PromptSession(
            input=pipe,
            output=make_prompt_output(BufferedOutput(written)),
        )
        await session.prompt_async("> ")
    return re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", written.getvalue())
