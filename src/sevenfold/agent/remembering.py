"""What an agent saves by itself, and whose words that is."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

from sevenfold.agent.agent import Agent
from sevenfold.core.errors import SevenfoldError
from sevenfold.core.memories import INDEX, read_memory
from sevenfold.core.memories import Memory as Remembered
from sevenfold.core.memory_secrets import refuse_secrets
from sevenfold.core.provenance import Origin, join_taint
from sevenfold.layers.extract_gate import Draft, with_own_head
from sevenfold.layers.stems import split_sentences
from sevenfold.layers.taint import Listener, Witnesses, split_passages
from sevenfold.run.tools.memory import Memory
from sevenfold.store.memory_dir import MemoryDir

MAX_NAMED_CHARS = 120
"""Of a line that is read in passing."""


def tell_waiting(memory: MemoryDir) -> tuple[str, ...]:
    """What a person is told when a session begins: that something waits for them. Blocks on the disk."""
    waiting = memory.waiting()
    if not waiting:
        return ()
    keys = ", ".join(dict.fromkeys(change.key for one in waiting for change in one.changes))
    shown = keys if len(keys) <= MAX_NAMED_CHARS else f"{keys[:MAX_NAMED_CHARS]}…"
    return (f"changes of memory wait for you, and count for nothing until then: {shown}; /memory review",)


def judge_saving(agent: Agent) -> None:
    """Have what the agent saves compared with what was said: a stranger's words wait for the user."""
    session, listener, turn = agent.session, Listener(), Lock()

    def origin_of(text: str) -> Origin:
        with turn:  # forks save by the same tool, each in a thread
            found = listener.listen(session.parent.messages).judge(text)
        return Origin("agent", "saved by the agent", session.id, said_by=found.said_by, taint=found.taint)

    def head_of(draft: Draft, known: Collection[str]) -> Draft:
        with turn:
            return with_own_head(draft, listener.listen(session.parent.messages), known)

    for tool in agent.toolbox.tools:
        if isinstance(tool, Memory):
            tool.origin_of, tool.head_of = origin_of, head_of


def judge_edits(agent: Agent, memory: MemoryDir) -> None:
    """Have files that the agent writes or edits in the memory folder recorded as its own, and judged so."""
    agent.toolbox.place = replace(agent.place, on_edit=_Edits(agent, memory).take)


@dataclass(frozen=True, slots=True)
class _Edits:
    """Memories that tools for files have changed."""

    agent: Agent
    memory: MemoryDir

    def take(self, path: str) -> str:
        """Record a file that was changed, if it is a memory; what the agent has to know of it."""
        folder = os.path.realpath(self.memory.path)
        if not path.startswith(f"{folder}{os.sep}"):
            return ""
        key = os.path.relpath(path, folder).replace(os.sep, "/")
        try:
            return self._record(key, path)
        except (SevenfoldError, OSError, ValueError) as error:
            return f"It counts for nothing in memory until the user has accepted it: {error}."

    def _record(self, key: str, path: str) -> str:
        text = Path(path).read_text(encoding="utf-8")
        refuse_secrets(text)
        origin = self._judge(key, text)
        self.memory.record_edit([key], origin)
        if origin.is_trusted:
            return "It is remembered."
        return (
            "It is not remembered yet: it says more than the user did, and waits for them; tell them that "
            "`sevenfold memory review` shows it."
        )

    def _judge(self, key: str, text: str) -> Origin:
        session = self.agent.session
        witnesses = Witnesses(split_passages(session.parent.messages))
        before = None if key == INDEX else self.memory.find(key)
        now = read_memory(key, text)
        old = self.memory.index_text().text if key == INDEX else before.memory.body if before else ""
        known = set(split_sentences(old))
        added = [sentence for sentence in split_sentences(now.body) if sentence not in known]
        found = witnesses.judge("\n".join(added))
        taint = found.taint | join_taint(*([before.origin] if before else []))
        if not added or not self._has_own_head(now, before.memory if before else None, witnesses):
            # To drop a rule, or when it applies, is a change that somebody else may want as well.
            taint |= witnesses.taints
        return Origin("agent", "edited by the agent", session.id, said_by=found.said_by, taint=taint)

    def _has_own_head(self, now: Remembered, before: Remembered | None, witnesses: Witnesses) -> bool:
        if before is not None:
            return _head(now) == _head(before)
        if now.key == INDEX:
            return True
        draft = Draft(now.key, now.name, now.description, now.kind, now.body, now.applies_to)
        return with_own_head(draft, witnesses, ()) == draft


def _head(memory: Remembered) -> str:
    return memory.text.removesuffix(memory.body)
