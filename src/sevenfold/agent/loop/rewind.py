"""Going back to an earlier message of a session: conversation, files as tools left them then, or both.

Files go first, then the conversation. Each step is logged before it is taken, and doing it again changes
nothing, so whoever is killed in between goes back once more. What commands changed is not taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.tools.checkpoints import CheckpointStore, FileRestore, RewindRecord
from sevenfold.agent.tools.executor import INTERRUPTED_RESULT
from sevenfold.core.errors import InputError
from sevenfold.core.messages import Message, Text, without_message_thinking
from sevenfold.core.system import run_blocking
from sevenfold.core.text.safe_text import REMINDER_TAG, find_fences
from sevenfold.store.files import RecordId
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import MessageRecord

COMMAND_TAG = "project-command"
"""Of the fence around the text of a project's command."""
TASK_TAG, AGENT_TAG = "background-task", "background-agent"
"""Of the fences in which it is told that one has ended: none of it may count as words of the user."""
REWIND_REASON = "the user went back to an earlier message"
PROMPT_TAKEN_BACK_REASON = "the prompt was taken back before it was answered"


@dataclass(frozen=True, slots=True)
class RewindPoint:
    """A message of the user's that can be gone back to: to before it was said."""

    place: int
    """In the history."""
    words: str
    """On one line."""
    text: str
    """As it was said, without what programs have added."""


@dataclass(frozen=True, slots=True)
class RewindOutcome:
    """What went back."""

    words: str
    """The message that was gone back to, if the conversation went back."""
    messages: int
    """That left the conversation, or came back to it."""
    restored: tuple[str, ...]
    kept: tuple[FileRestore, ...]
    """Files that stay as they are: somebody else changed them, or what they held is no longer kept."""


def list_rewind_points(agent: Agent) -> list[RewindPoint]:
    """The user's own messages that the view still has, the last first."""
    session, hidden = agent.session, agent.session.hidden
    found = (
        RewindPoint(place, " ".join(text.split()), text)
        for place, message in enumerate(session.history)
        if place not in hidden and (text := extract_typed_text(message).strip())
    )
    return list(reversed(list(found)))


async def plan_rewind(agent: Agent, place: int) -> list[FileRestore]:
    """What going back to before a message does to files that tools have edited since."""
    store, ids = _require_checkpoints(agent), _ids(agent)

    def plan() -> list[FileRestore]:
        first = store.find_first(ids, place)
        return [] if first is None else store.plan(first)

    return await run_blocking(plan)


async def rewind_agent(
    agent: Agent, point: RewindPoint, plan: Sequence[FileRestore], *, keeps_conversation: bool = False
) -> RewindOutcome:
    """Go back to before a message. `plan` are the files to restore; none: they stay as they are."""
    if agent.is_busy:
        raise InputError("a turn is under way; interrupt it first")
    store, ids = _require_checkpoints(agent), _ids(agent)
    dropped = [] if keeps_conversation else ids[point.place :]
    stays = ids[: len(ids) - len(dropped)]

    def restore() -> list[str]:
        first = store.next_number
        done = store.restore(plan)
        store.note_rewind(stays[-1] if stays else None, dropped, first)
        return done

    restored = await run_blocking(restore)
    gone: tuple[Message, ...] = ()
    if keeps_conversation:
        _tell_restored(agent, restored)
    else:
        is_first = point.place == list_rewind_points(agent)[-1].place
        gone = await agent.session.rewind(point.place, REWIND_REASON)
        if is_first:
            # Where the agent works was said beside the first prompt, and holds for the next one.
            _repeat_asides(agent, gone)
    kept = tuple(item for item in plan if item.state in ("changed", "lost"))
    return RewindOutcome(point.words if gone else "", len(gone), tuple(restored), kept)


async def undo_rewind(agent: Agent) -> RewindOutcome:
    """Undo the last rewind: its messages come back if nothing was said since, its files if nobody changed
    them."""
    if agent.is_busy:
        raise InputError("a turn is under way; interrupt it first")
    store = _require_checkpoints(agent)
    rewind = await run_blocking(store.find_last_rewind)
    if rewind is None:
        raise InputError("there is no rewind to undo")
    ids = _ids(agent)
    is_next = (ids[-1] if ids else None) == rewind.after
    messages = await run_blocking(lambda: _read_dropped(agent, store, rewind)) if is_next else []
    if rewind.dropped and not messages:
        raise InputError("something was said since the rewind, so it cannot be undone; go back further")

    def restore() -> tuple[list[str], list[FileRestore]]:
        plan = store.plan(rewind.first, rewind.number)
        return store.restore(plan), plan

    restored, plan = await run_blocking(restore)
    for message in messages:
        agent.session.history.append(message)
    await agent.session.turn_ended()
    renamed = dict(zip(rewind.dropped, _ids(agent)[len(ids) :], strict=False))
    await run_blocking(lambda: store.note_undone(rewind, renamed))
    if not messages:
        _tell_restored(agent, restored)
    kept = tuple(item for item in plan if item.state in ("changed", "lost"))
    return RewindOutcome("", len(messages), tuple(restored), kept)


async def take_back_prompt(agent: Agent, prompt: Message) -> bool:
    """Have a prompt leave the conversation that was interrupted before anything came of it; False where
    something has."""
    history = agent.session.history
    place = next((at for at in range(len(history) - 1, -1, -1) if history[at] is prompt), None)
    if place is None or history[-1].blocks != (Text(INTERRUPTED_RESULT),):
        return False
    if any(message.role == "assistant" for message in history[place:-1]):
        return False
    _repeat_asides(agent, await agent.session.rewind(place, PROMPT_TAKEN_BACK_REASON))
    return True


def _repeat_asides(agent: Agent, gone: Sequence[Message]) -> None:
    """Say again, with the next prompt, what the program said beside the first of these messages."""
    for message in gone[1:]:
        if message.role == "assistant":
            return
        text = "\n".join(block.text for block in message.blocks if isinstance(block, Text))
        if message.role == "system":
            agent.remind(text)
        elif text.startswith(f"<{REMINDER_TAG}>"):
            agent.remind(text.removeprefix(f"<{REMINDER_TAG}>").removesuffix(f"</{REMINDER_TAG}>").strip())


def _tell_restored(agent: Agent, restored: Sequence[str]) -> None:
    if restored:
        agent.remind(f"The user has put these files back to an earlier state: {', '.join(restored)}")


def _require_checkpoints(agent: Agent) -> CheckpointStore:
    if agent.checkpoints is None:
        raise InputError("this agent keeps no checkpoints, so it cannot go back")
    return agent.checkpoints


def extract_typed_text(message: Message) -> str:
    """What a person typed, without what programs have added; empty where none did."""
    if message.role != "user":
        return ""
    texts = (block.text for block in message.blocks if isinstance(block, Text))
    return "\n\n".join(_without_command_text(text) for text in texts if not text.lstrip().startswith("<"))


def _without_command_text(text: str) -> str:
    """A project's command as it was typed: its text stands behind it in a fence."""
    return text.partition(f"\n\n<{COMMAND_TAG} ")[0] if find_fences(COMMAND_TAG, text) else text


def _ids(agent: Agent) -> list[RecordId]:
    return [entry.id for entry in agent.session.entries]


def _read_dropped(agent: Agent, store: CheckpointStore, rewind: RewindRecord) -> list[Message]:
    """The messages that left, from the transcript; without thinking where that was signed over others."""
    wanted, found = set(rewind.dropped), dict[RecordId, Message]()
    with Folder.open(store.session.parent) as sessions:
        for line in scan_transcript(sessions, agent.session.id):
            if isinstance(line, StoredRecord) and line.record.id in wanted:
                body = line.record.body
                if isinstance(body, MessageRecord):
                    found[line.record.id] = body.message
    messages = [found[name] for name in rewind.dropped if name in found]
    if agent.session.capabilities.rewrites_history:
        return messages
    return [without_message_thinking(message) for message in messages]
