"""A brain that says back what it was told: deterministic, and enough to exercise everything else."""

from __future__ import annotations

from dataclasses import dataclass

from sevenfold.simulator.responders.brain_protocol import Prompt, Reply, result_text, say

MAX_ECHO_CHARS = 2_000
"""An echo of a whole file would double the conversation at every turn."""


@dataclass(frozen=True, slots=True)
class EchoBrain:
    async def reply(self, prompt: Prompt) -> Reply:
        if prompt.purpose == "summary":
            said = sum(len(message.blocks) for message in prompt.messages)
            return say(f"A conversation of {said} blocks. It was last about: {_shortened(prompt.last_text)}")
        results = [result_text(result) for result in prompt.results]
        text = "\n".join(results) if results else prompt.last_text
        return say(_shortened(text) or "(nothing)", think="Say it back." if prompt.thinks else "")

    def check_done(self) -> None:
        """An echo expects nothing."""


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_ECHO_CHARS else f"{text[:MAX_ECHO_CHARS]}…"
