"""A brain that gives again the answers of a recorded session: plain Messages JSONL, one message a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sevenfold.core.canonical import Digest, block_bytes, digest
from sevenfold.core.errors import CallUnexpected, ScriptError, WireError
from sevenfold.core.json import JsonObject, read_object
from sevenfold.core.messages import Message, RedactedThinking, Thinking
from sevenfold.core.wire import read_message, write_block
from sevenfold.simulator.brain import Prompt, Reply, say
from sevenfold.store.disk import mapped_errors


@dataclass(slots=True)
class RecordedBrain:
    """Answers with the recorded message that followed what the request holds.

    Where a request holds none of the recorded answers (the first, or one after a compaction) it gets the next
    that was not given yet. Asking again gives the same again, so retries and branches work.
    """

    answers: tuple[Message, ...]
    _keys: tuple[Digest, ...] = field(init=False)
    _next: int = 0

    def __post_init__(self) -> None:
        self._keys = tuple(_key(answer) for answer in self.answers)

    async def reply(self, prompt: Prompt) -> Reply:
        if prompt.purpose == "summary":
            return say(f"The session so far, of {len(prompt.messages)} messages.")
        at = self._place(prompt.messages)
        if at >= len(self.answers):
            raise CallUnexpected(
                f"request {prompt.number} asks for answer {at + 1}, and the recording has {len(self.answers)}"
            )
        self._next = max(self._next, at + 1)
        return Reply(self.answers[at].blocks)

    def check_done(self) -> None:
        """A recording may be left early."""

    def _place(self, messages: Sequence[Message]) -> int:
        for message in reversed(messages):
            if message.role != "assistant":
                continue
            key = _key(message)
            found = [at for at, own in enumerate(self._keys) if own == key]
            # Short answers repeat: of those given so far, the latest is meant.
            given = [at for at in found if at < self._next]
            if found:
                return (given or found)[-1 if given else 0] + 1
        return self._next


def read_recording(path: Path) -> RecordedBrain:
    """The answers in a file. Lines that are no messages are passed over; a file without any is refused."""
    with mapped_errors(f"read the recording {path}"):
        lines = path.read_bytes().splitlines()
    answers = tuple(_answers(lines))
    if not answers:
        raise ScriptError(
            f"{path} holds no assistant message; expected plain Messages JSONL, one message with role and "
            "content a line"
        )
    return RecordedBrain(answers)


def _answers(lines: Iterable[bytes]) -> Iterable[Message]:
    for line in lines:
        try:
            row = read_object(line)
            inner = row.get("message")
            wire = inner if "role" not in row and isinstance(inner, JsonObject) else row
            message = read_message(JsonObject({"role": wire.get("role"), "content": wire.get("content")}))
        except WireError:
            continue
        if message.role == "assistant" and message.blocks:
            yield message


def _key(message: Message) -> Digest:
    """A message by what it says, its thinking apart: that is signed anew whenever it is given."""
    spoken = [block for block in message.blocks if not isinstance(block, (Thinking, RedactedThinking))]
    return digest(b"\n".join(block_bytes("assistant", write_block(block)) for block in spoken))
