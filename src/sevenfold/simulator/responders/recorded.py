"""A brain that gives again the answers of a recorded session, whoever recorded it: Claude Code, Codex, or
anything that writes plain Messages JSONL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sevenfold.core.canonical import Digest, block_bytes, digest
from sevenfold.core.errors import CallUnexpected, ScriptError
from sevenfold.core.messages import Block, Message, RedactedThinking, Thinking
from sevenfold.core.wire import write_block
from sevenfold.simulator.responders.brain_protocol import Prompt, Reply, say
from sevenfold.store.foreign.detect import detect_agent
from sevenfold.store.foreign.entries import ForeignAgent, ForeignInput, ForeignOutput, LineKey
from sevenfold.store.foreign.transcripts import LineTally, read_transcript


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
    agent = detect_agent(path)
    answers = _answers(path, agent) if agent else ()
    if not answers:
        raise ScriptError(
            f"{path} holds no answer of a model; expected a transcript of Claude Code, a Codex rollout, or "
            "plain Messages JSONL: one message with role and content a line"
        )
    return RecordedBrain(answers)


def _answers(path: Path, agent: ForeignAgent) -> tuple[Message, ...]:
    """One message a model call, in the order in which the calls began; sub-agents' among the others."""
    found: dict[object, list[Block]] = {}
    seen: set[LineKey] = set()
    spoken = 0
    for at, entry in enumerate(read_transcript(path, agent, LineTally())):
        spoken += isinstance(entry, ForeignInput)
        # A session that was resumed repeats lines, and so do sub-agents' in their parent's file.
        if not isinstance(entry, ForeignOutput) or (entry.key and entry.key in seen):
            continue
        seen.add(entry.key)
        # Only Anthropic's calls have ids of their own; the others' are counted, where the log has counts. So
        # there what was said in between parts them too. A line without any id is an answer by itself.
        part = spoken if entry.dialect == "openai" else 0
        found.setdefault((entry.lane, entry.call, part) if entry.call else at, []).extend(entry.blocks)
    return tuple(Message("assistant", tuple(blocks)) for blocks in found.values() if blocks)


def _key(message: Message) -> Digest:
    """A message by what it says, its thinking apart: that is signed anew whenever it is given."""
    spoken = [block for block in message.blocks if not isinstance(block, (Thinking, RedactedThinking))]
    return digest(b"\n".join(block_bytes("assistant", write_block(block)) for block in spoken))
