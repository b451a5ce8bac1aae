"""Finds the session that a caller's list of messages goes on with, after the caller was restarted.

A caller with a list of its own names no session. Without this, its first request would open a new one that
knows nothing of what was stored, cleared or summed up before: the view would be another than the one that was
sent, which the cache does not have and signed thinking does not allow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from sevenfold.core.errors import InputError, SevenfoldError, WireError
from sevenfold.core.json import write_json
from sevenfold.core.messages import Message, Text, ToolResult, ToolUse, read_message
from sevenfold.session.history_sync import has_same_words
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.records import MESSAGE_MARK, MessageRecord, read_line
from sevenfold.store.transcript.transcript import SessionEntry, SessionId, is_agent_session, list_sessions

MAX_SESSIONS = 32
"""The newest ones, which are looked at: whoever was restarted was at work lately."""
TAIL_BYTES = 1024 * 1024
"""Of each transcript. An answer that has a longer result behind it is not found."""
LAST_ANSWERS = 2
"""The caller's last answer is one of so many of the session's: it may have lost one that was on its way."""
COMPARED_MESSAGES = 6
"""Messages before that answer which have to be the same: `Done.` ends many sessions."""
SKIPPED_MESSAGES = 2
"""Messages of the transcript that may stand between two of the list: an answer that the caller keeps in other
words is written twice."""


def find_earlier_session(sessions: Folder, messages: Sequence[object]) -> SessionId | None:
    """The session whose last messages these go on with; None where there is none. Blocks on the disk."""
    said = _read_messages(messages)
    last = next((at for at in reversed(range(len(said))) if said[at].role == "assistant"), None)
    if last is None:
        return None
    mark = _find_mark(said[last])
    for entry in list_sessions(sessions)[:MAX_SESSIONS]:
        if not is_agent_session(entry.id) and _ends_alike(sessions, entry, said[: last + 1], mark):
            return entry.id
    return None


def _read_messages(messages: Sequence[object]) -> list[Message]:
    """None of them where one is none: whoever takes them in says what is wrong."""
    with suppress(WireError, InputError):
        return [one if isinstance(one, Message) else read_message(one) for one in messages]
    return []


def _find_mark(answer: Message) -> bytes:
    """Bytes that stand in every transcript with this answer."""
    for block in answer.blocks:
        if isinstance(block, ToolUse):
            return write_json(block.id)
        if isinstance(block, Text) and block.text:
            return write_json(block.text)[:-1]
    return b""


def _ends_alike(sessions: Folder, entry: SessionEntry, said: Sequence[Message], mark: bytes) -> bool:
    start = max(0, entry.size_bytes - TAIL_BYTES)
    with suppress(SevenfoldError):
        tail = sessions.read_range(f"{entry.id}.jsonl", start, TAIL_BYTES)
        return mark in tail and _goes_on_from(said, list(_read_tail(tail)))
    return False  # another process may have removed it


def _read_tail(tail: bytes) -> Iterator[Message]:
    for line in tail.split(b"\n"):
        if MESSAGE_MARK in line:
            with suppress(WireError):
                body = read_line(line).body
                if isinstance(body, MessageRecord):
                    yield body.message


def _goes_on_from(said: Sequence[Message], recorded: Sequence[Message]) -> bool:
    """Whether the last of `said` is one of the last answers that were recorded, and what is before it too."""
    answers = [at for at in reversed(range(len(recorded))) if recorded[at].role == "assistant"]
    return any(_match_back(said, recorded[: at + 1]) for at in answers[: LAST_ANSWERS + SKIPPED_MESSAGES])


def _match_back(said: Sequence[Message], recorded: Sequence[Message]) -> bool:
    if not _is_alike(said[-1], recorded[-1]):
        return False
    at = len(recorded) - 1
    for message in reversed(said[-1 - COMPARED_MESSAGES : -1]):
        near = range(at - 1, max(-1, at - 2 - SKIPPED_MESSAGES), -1)
        found = next((place for place in near if _is_alike(message, recorded[place])), None)
        if found is None:
            return at == 0 and len(recorded) > COMPARED_MESSAGES
        at = found
    return True


def _is_alike(one: Message, other: Message) -> bool:
    return has_same_words(one, other) and _answered(one) == _answered(other)


def _answered(message: Message) -> list[str]:
    return [block.tool_use_id for block in message.blocks if isinstance(block, ToolResult)]
