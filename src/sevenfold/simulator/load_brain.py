"""Creates a `Brain` from the name on a command line: `echo`, a recording, or a YAML script.

`EchoBrain` repeats what it was told. `RecordedBrain` repeats the answers of a recorded session of Claude
Code, Codex or anything that writes Messages JSONL. A YAML script has the same steps that Python can write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sevenfold.core.canonical import Digest, block_bytes, digest
from sevenfold.core.errors import CallUnexpected, ScriptError, WireError
from sevenfold.core.json import Json, JsonObject, freeze
from sevenfold.core.messages import Block, Message, RedactedThinking, Text, Thinking, write_block
from sevenfold.core.system import map_os_errors
from sevenfold.simulator.brain import (
    ANY_TIMES,
    STOP_REASONS,
    Brain,
    Match,
    Prompt,
    Purpose,
    Reply,
    Script,
    Step,
    call_tool,
    explain_unknown_reason,
    result_text,
    say,
)
from sevenfold.simulator.wire.answer import USAGE_OVERRIDES
from sevenfold.store.foreign.entries import ForeignAgent, ForeignInput, ForeignOutput, LineKey
from sevenfold.store.foreign.transcripts import LineTally, detect_agent, read_transcript

if TYPE_CHECKING:
    from yaml.nodes import Node


# Echo: deterministic, and enough to exercise everything else.

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
        found.setdefault((entry.conversation, entry.call, part) if entry.call else at, []).extend(
            entry.blocks
        )
    return tuple(Message("assistant", tuple(blocks)) for blocks in found.values() if blocks)


def _key(message: Message) -> Digest:
    """A message by what it says, its thinking apart: that is signed anew whenever it is given."""
    spoken = [block for block in message.blocks if not isinstance(block, (Thinking, RedactedThinking))]
    return digest(b"\n".join(block_bytes("assistant", write_block(block)) for block in spoken))


# YAML scripts. Errors name the step.

STEP_KEYS = ("name", "match", "think", "redacted", "text", "tools", "stop_reason", "usage", "times")
STEP_CONTENT_KEYS = ("think", "redacted", "text", "tools", "stop_reason")
"""A step has one of these at least; a stop reason alone is an answer without content."""
MATCH_KEYS = ("text", "pattern", "result", "tool", "system", "model", "purpose")
TOOL_KEYS = ("name", "input", "id")
PURPOSE_NAMES: Mapping[str, Purpose] = {"reply": "reply", "summary": "summary"}


def read_script(path: Path) -> Script:
    """The script in a file; every mistake in it is a `ScriptError`."""
    with map_os_errors(f"read the script {path}"):
        data = path.read_bytes()
    try:
        return parse_script(data.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ScriptError(
            f"{path}: line {line} is not UTF-8 (byte 0x{data[error.start]:02x}); save the file as UTF-8"
        ) from error


def parse_script(text: str, where: str = "script") -> Script:
    """A script from YAML text: a list of steps, or `steps` with `ordered`."""
    import yaml

    try:
        _refuse_duplicates(cast("Node | None", yaml.compose(text, yaml.SafeLoader)))  # pyright: ignore[reportUnknownMemberType]
        loaded: object = yaml.safe_load(text)
        top = freeze(loaded)
    except (yaml.YAMLError, WireError) as error:
        raise ScriptError(f"{where}: not YAML that can be read: {' '.join(str(error).split())}") from error
    ordered: Json = True
    if isinstance(top, JsonObject):
        _known(where, top, ("steps", "ordered"))
        ordered, top = top.get("ordered", True), top.get("steps")
    if not isinstance(top, tuple) or not isinstance(ordered, bool):
        raise ScriptError(
            f"{where}: expected a list of steps, or an object with steps and ordered: true|false"
        )
    steps = tuple(_step(f"{where}: step {at + 1}", item) for at, item in enumerate(top))
    return Script(steps, is_ordered=ordered)


def _refuse_duplicates(top: Node | None) -> None:
    """YAML lets a later key overwrite an earlier one without a word; in a script that is a mistake."""
    import yaml

    waiting = [top] if top is not None else []
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        elif isinstance(node, yaml.MappingNode):
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            for key in keys:
                if keys.count(key) > 1:
                    line = node.start_mark.line + 1
                    raise yaml.YAMLError(
                        f"the key {key!r} stands twice in the fields that begin on line {line}"
                    )
            waiting += [value for _, value in node.value]


def _step(where: str, value: Json) -> Step:
    step = _object(where, value)
    _known(where, step, STEP_KEYS)
    blocks: list[Block] = []
    if "think" in step:
        blocks.append(Thinking(_text(where, step, "think")))
    if "redacted" in step:
        blocks.append(RedactedThinking(_text(where, step, "redacted")))
    if "text" in step:
        blocks.append(Text(_text(where, step, "text")))
    blocks += [_tool(f"{where}.tools.{at}", item) for at, item in enumerate(_list(where, step, "tools"))]
    reason = _text(where, step, "stop_reason") if "stop_reason" in step else None
    if reason not in {None, *STOP_REASONS}:
        raise ScriptError(f"{where}: {explain_unknown_reason(reason)}")
    if not any(key in step for key in STEP_CONTENT_KEYS):
        raise ScriptError(f"{where}: answers nothing; give it some of {', '.join(STEP_CONTENT_KEYS)}")
    reply = Reply(tuple(blocks), reason, _usage(f"{where}.usage", step.get("usage")))
    name = _text(where, step, "name") if "name" in step else ""
    return Step(reply, _match(f"{where}.match", step.get("match")), _times(where, step.get("times", 1)), name)


def _tool(where: str, value: Json) -> Block:
    tool = _object(where, value)
    _known(where, tool, TOOL_KEYS)
    given = tool.get("input")
    fields = _object(f"{where}.input", given) if given is not None else JsonObject()
    return call_tool(_text(where, tool, "name"), fields, _text(where, tool, "id") if "id" in tool else "")


def _match(where: str, value: Json) -> Match:
    if value is None:
        return Match()
    match = _object(where, value)
    _known(where, match, MATCH_KEYS)
    purpose = PURPOSE_NAMES.get(str(match.get("purpose", "reply")))
    if purpose is None:
        raise ScriptError(f"{where}.purpose: {match.get('purpose')!r} is unknown; expected reply or summary")
    texts = {key: _text(where, match, key) for key in match if key != "purpose"}
    try:
        return Match(purpose=purpose, **texts)
    except ScriptError as error:
        raise ScriptError(f"{where}.{error}") from error


def _usage(where: str, value: Json) -> Mapping[str, int]:
    if value is None:
        return {}
    usage = _object(where, value)
    _known(where, usage, tuple(USAGE_OVERRIDES))
    for key, count in usage.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise ScriptError(f"{where}.{key}: expected a count of 0 or more, not {count!r}")
    counts = cast("Mapping[str, int]", dict(usage))
    thinking, output = counts.get("thinking_tokens", 0), counts.get("output_tokens")
    if output is not None and thinking > output:
        raise ScriptError(
            f"{where}.thinking_tokens: {thinking} is more than output_tokens, {output}, which includes it"
        )
    return counts


def _times(where: str, value: Json) -> int:
    if value == "any":
        return ANY_TIMES
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ScriptError(f"{where}.times: expected 1 or more, or any, not {value!r}")
    return value


def _object(where: str, value: Json) -> JsonObject:
    if not isinstance(value, JsonObject):
        raise ScriptError(f"{where}: expected fields, not {value!r}")
    return value


def _list(where: str, holder: JsonObject, key: str) -> tuple[Json, ...]:
    value = holder.get(key, ())
    if not isinstance(value, tuple):
        raise ScriptError(f"{where}.{key}: expected a list, not {value!r}")
    return value


def _text(where: str, holder: JsonObject, key: str) -> str:
    value = holder.get(key)
    if not isinstance(value, str):
        raise ScriptError(f"{where}.{key}: expected text, not {value!r}")
    return value


def _known(where: str, holder: JsonObject, keys: Sequence[str]) -> None:
    for key in holder:
        if key not in keys:
            raise ScriptError(f"{where}: {key!r} is unknown; expected some of {', '.join(keys)}")


def load_brain(name: str) -> Brain:
    """`echo`, a `.yaml` script, or a `.jsonl` recording."""
    if name == "echo":
        return EchoBrain()
    path = Path(name)
    match path.suffix.lower():
        case ".yaml" | ".yml":
            return read_script(path)
        case ".jsonl":
            return read_recording(path)
        case _:
            raise ScriptError(f"brain {name!r} is unknown; expected echo, a script.yaml or a session.jsonl")
