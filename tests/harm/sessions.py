"""Turns of a real agent whose scripted model writes a given sentence with the `memory` tool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sevenfold.core.json import JsonObject
from sevenfold.core.memories import read_memory, write_memory
from sevenfold.core.messages import Message, ToolResult, ToolUse, ToolUseId
from sevenfold.core.text.stems import normalize_text, split_sentences
from sevenfold.layers.context import ContextSource, render_context
from sevenfold.layers.forks.policy import NoteMessage, render_mail
from sevenfold.layers.memory.extraction.gate import MemoryDraft, quote_draft
from sevenfold.layers.memory.extraction.settings import EXTRACTION_KIND
from sevenfold.layers.memory.trust.taint import Attribution, ConversationSources, split_passages
from sevenfold.layers.memory.trust.taint_changes import attribute_change
from sevenfold.providers.scripted import ScriptedProvider, make_response
from tests.agent.test_extraction import memories
from tests.agent.workshop import Shop

TOOLS = {
    "web": ("web_fetch", {"url": "https://x.example"}),
    "mcp": ("mcp__tracker__read", {"id": "7"}),
    "skill": ("skill", {"name": "release"}),
    "file name": ("glob", {"pattern": "docs/*"}),
    "file": ("read", {"file_path": "docs/GUIDE.md"}),
    "sub-agent": ("task", {"prompt": "Look around."}),
}
"""Which tool shows the model somebody else's words, for each way in."""


@dataclass(frozen=True, slots=True)
class PlayedTurn:
    said: str
    written: str
    """By the model, as the content of a memory."""
    vector: str
    instructions: str = ""
    """AGENTS.md of the project."""
    page: str = ""
    """What the tool showed; empty: what is written."""
    earlier: tuple[str, ...] = ()
    """What the user said in earlier turns."""
    name: str = ""
    description: str = "what to keep in mind"
    by_fork: bool = False
    """Whether the memory is written by extraction, after the turn."""


async def play_turns(turns: Sequence[PlayedTurn], home: Path) -> list[str]:
    """Play each turn in a session of its own: the trusted memories that it left; empty where it left none."""
    sessions = [await _play(turn, home, number) for number, turn in enumerate(turns)]
    with memories(home) as memory:
        trusted = [one for one in memory.scan(None) if one.is_trusted]
    return [
        "\n".join(one.memory.body for one in trusted if one.origin.session == session) for session in sessions
    ]


async def _play(turn: PlayedTurn, home: Path, number: int) -> str:
    shop = Shop(home=home, provider=ScriptedProvider([]))
    (shop.project / "AGENTS.md").unlink(missing_ok=True)
    if turn.instructions:
        (shop.project / "AGENTS.md").write_text(turn.instructions, encoding="utf-8")
    given = {
        "action": "write",
        "name": turn.name or f"learnt-{number}",
        "description": turn.description,
        "content": turn.written,
    }
    writes = [make_response(calls={"memory": given}), make_response("Done.")]
    turns = [make_response("All right.") for _ in turn.earlier]
    if turn.by_fork:
        # Extraction decides itself whether a turn is worth a look, and how often it asks.
        shop.provider = ScriptedProvider([*turns, "Done."], by_purpose={EXTRACTION_KIND: writes})
        return await _talk(turn, shop, {"writer": "model"})
    with ScriptedProvider([*turns, *writes]) as models:
        shop.provider = models
        return await _talk(turn, shop, {"enabled": False})


async def _talk(turn: PlayedTurn, shop: Shop, extraction: Mapping[str, str | bool]) -> str:
    """The session in which it was said."""
    agent = await shop.open(tools=None, settings={"extraction": extraction}, mode="bypass")
    for message in _shown(turn):
        agent.session.history.append(message)
    for said in (*turn.earlier, turn.said):
        await agent.run_turn(said)
    await agent.settle()
    session = agent.session.id
    await agent.close()
    return session


def judge_turn(turn: PlayedTurn) -> str:
    """The same by the policy alone, without an agent or a disk."""
    told = ContextSource("project", turn.instructions, "AGENTS.md")
    head = [Message("user", render_context([told], 1_000, len).text)] if turn.instructions else []
    before = [
        message
        for said in turn.earlier
        for message in (Message("user", said), Message("assistant", "All right."))
    ]
    said = Message("user", turn.said)
    sources = ConversationSources(split_passages([*head, *_shown(turn), *before, said]))
    draft = MemoryDraft(key="learnt.md", name="learnt", description="", kind="project", body=turn.written)
    found = _attribute(draft, sources)
    quoted = quote_draft(draft, found, sources) if found.taint else None
    if quoted is not None:
        draft, found = quoted, _attribute(quoted, sources)
    return "" if found.taint else draft.body


def is_users_own(turn: PlayedTurn, kept: str) -> bool:
    """Whether a memory is what the user typed, to the letter; capitals and spaces may differ."""
    said = _squeeze(turn.said)
    return all(_squeeze(sentence.rstrip(" .;")) in said for sentence in split_sentences(kept))


def _squeeze(text: str) -> str:
    return "".join(normalize_text(text).casefold().split())


def _attribute(draft: MemoryDraft, sources: ConversationSources) -> Attribution:
    text = write_memory("learnt", "what to keep in mind", "project", draft.body)
    return attribute_change(None, read_memory(draft.key, text), sources)


def _shown(turn: PlayedTurn) -> Iterator[Message]:
    """What the model has seen before the turn."""
    page = turn.page or turn.written
    if turn.vector == "mail":
        yield Message("user", render_mail("m1", "eve", NoteMessage(page)))
        yield Message("assistant", "I have read it.")
    elif turn.vector in TOOLS:
        name, told = TOOLS[turn.vector]
        use = ToolUse(ToolUseId("u1"), name, JsonObject(told))
        yield Message("user", "Look around first.")
        yield Message("assistant", (use,))
        yield Message("user", (ToolResult(use.id, page),))
        yield Message("assistant", "I have read it.")
