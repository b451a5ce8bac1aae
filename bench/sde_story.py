"""From developers' chats to the bug report: what extraction without a model keeps, and whether it is found.

    python bench/sde_story.py --data DIR [--writer rules|scripted] [--show] [--json]

DIR is the folder of data with `retrieval/sde_bench`. Chats are played turn by turn through the extraction
writer into one memory directory; then each bug report is asked as a question over the memories alone.

    kept        chats that decide something and left a memory
    noise       chats that decide nothing and left one
    recall@5    reports for which a memory of the right chat is among the first five
    shown       of those, that are certain enough for a session to show by itself
    amended     of the six decisions that were changed later: the new one is first, its memory holds what the
                second chat said, and history holds what the first did

For the amended ones the chats that tell the same decision in another course of events are left out: no
project has both. `scripted` is a fork whose model writes down how each chat began and its last recap: what
recall would find if extraction understood everything.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time

from sevenfold.core.clock import SystemClock
from sevenfold.core.events import ignore_event
from sevenfold.core.messages import Message, ToolResult, ToolUse
from sevenfold.core.requests import ModelRequest, RequestParams
from sevenfold.layers.forks.policy import ForkBrief
from sevenfold.layers.forks.runner import ForkResult, ToolRunner, run_fork
from sevenfold.layers.memory.extraction.drafts import ConversationSnapshot, RecordedMessage
from sevenfold.layers.memory.extraction.settings import ExtractionSettings
from sevenfold.layers.memory.extraction.writer import ExtractionPlaces, ExtractionWriter, ForkTools, RunLook
from sevenfold.layers.memory.recall.finder import MemoryFinder, MemoryLibrary
from sevenfold.layers.memory.recall.policy import RecallFacts, RecallSettings, choose_recalled
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.session.settings import SETTINGS_SECTIONS
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.project.project import open_project
from sevenfold.store.project.settings_files import read_settings

FIRST = 5


@dataclass(frozen=True, slots=True)
class Chat:
    id: str
    messages: tuple[Message, ...]

    @property
    def topic(self) -> str:
        """`dedupe` of `boltons-dedupe-amended-001_s0`."""
        return self.id.removeprefix("boltons-").partition("-")[0]

    @property
    def decides(self) -> bool:
        return not self.id.startswith("decoy")


@dataclass(frozen=True, slots=True)
class Report:
    id: str
    text: str
    gold: tuple[str, ...]
    kind: str

    @property
    def topic(self) -> str:
        return self.id.removeprefix("boltons-").partition("-")[0]


def read_lines(path: Path) -> Iterator[dict[str, object]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def read_chats(folder: Path) -> list[Chat]:
    """Without the commits: what is in git is not learnt from chats."""
    found: list[Chat] = []
    for line in read_lines(folder / "docs.jsonl"):
        name, text = str(line["id"]), str(line["text"])
        if name.endswith("_commit"):
            continue
        parts = re.split(r"^(user|assistant): ", text, flags=re.MULTILINE)[1:]
        spoken = zip(parts[::2], parts[1::2], strict=True)
        messages = tuple(
            Message("user" if who == "user" else "assistant", said.strip()) for who, said in spoken
        )
        found.append(Chat(name, messages))
    return found


def read_reports(folder: Path) -> list[Report]:
    return [
        Report(str(line["id"]), str(line["query"]), tuple(map(str, _listed(line["gold"]))), str(line["type"]))
        for line in read_lines(folder / "queries.jsonl")
    ]


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []  # pyright: ignore[reportUnknownArgumentType]


class World:
    """One project's memories, and chats that fill them."""

    def __init__(self, root: Path, writer: str) -> None:
        start = root / "project"
        start.mkdir(parents=True)
        settings = read_settings(SETTINGS_SECTIONS, root=start, environ={"HOME": str(root)})
        project = open_project(start, settings, user_home=root)
        self.memory = MemoryDir(project)
        self._writer = writer
        self._finder = MemoryFinder(
            MemoryLibrary(project, self.memory, root, start), SystemClock(), ignore_event
        )

    def play(self, chats: Sequence[Chat]) -> None:
        for chat in chats:
            asyncio.run(self._play(chat))

    async def _play(self, chat: Chat) -> None:
        settings = ExtractionSettings(writer="rules" if self._writer == "rules" else "model")
        places = ExtractionPlaces(session=chat.id, memory=self.memory, folder=str(self.memory.path))
        tools = None if self._writer == "rules" else ForkTools(("memory",), scripted(chat), nothing)
        extraction = ExtractionWriter(places, settings, tools)
        history = [RecordedMessage(f"{chat.id}.{at}", message) for at, message in enumerate(chat.messages)]
        ends = [at + 1 for at, message in enumerate(chat.messages) if message.role == "assistant"]
        is_whole = self._writer != "rules"
        for end in [len(history)] if is_whole else sorted({*ends, len(history)}):
            await extraction.turn_ended(
                ConversationSnapshot(history[:end], [spoken.message for spoken in history[:end]])
            )

    def sources(self, key: str) -> list[str]:
        """The chats that a memory came from, the newest first."""
        origins = [
            change.origin for entry in self.memory.log(key) for change in entry.changes if change.key == key
        ]
        return list(dict.fromkeys(origin.session for origin in origins))

    def rank(self, question: str) -> list[str]:
        return [found.key for found in self._finder.find(question, FIRST)]

    def is_shown(self, question: str, gold: Sequence[str]) -> bool:
        """Whether the right one is so certain that a session shows it by itself, without a model's choice."""
        found = self._finder.find(question, FIRST)
        sure = choose_recalled(found, RecallFacts(), RecallSettings())
        return any(name in gold for one in sure for name in self.sources(one.key))


def scripted(chat: Chat) -> RunLook:
    """A model that keeps how the chat began and how it ended."""
    opening = str(chat.messages[0].content)
    last = next(str(message.content) for message in reversed(chat.messages) if message.role == "assistant")
    first = re.split(r"(?<=[.!?])\s", opening)[0]

    async def run(brief: ForkBrief, run_tool: ToolRunner, _new: Sequence[RecordedMessage]) -> ForkResult:
        # As a model would that has read the list of memories: an amendment goes where the decision is.
        name = (
            chat.topic
            if "-amended-" in chat.id
            else re.sub(r"[^a-z0-9]+", "-", first.lower())[:60].strip("-")
        )
        content = f"{last[:3000]}\n\n**Why:** {opening[:1500]}"
        written = {
            "action": "write",
            "name": name,
            "type": "project",
            "description": first[:140],
            "content": content,
        }
        provider = ScriptedProvider([make_response(calls={"memory": written}), make_response("Done.")])
        parent = ModelRequest(RequestParams(model="claude-opus-5-5", max_tokens=1_000), chat.messages)
        return await run_fork(parent, brief, provider, run_tool=run_tool)

    return run


async def nothing(use: ToolUse) -> ToolResult:
    return ToolResult(use.id, "nothing to read here", is_error=True)


def tell_recall(
    root: Path, chats: Sequence[Chat], reports: Sequence[Report], writer: str, show: bool
) -> dict[str, float]:
    world = World(root, writer)
    world.play([chat for chat in chats if "-amended-" not in chat.id])
    sources: dict[str, list[str]] = {
        item.memory.key: world.sources(item.memory.key) for item in world.memory.scan(None)
    }
    left = {name for names in sources.values() for name in names}
    asked = [report for report in reports if report.kind == "conversation"]
    hits = 0
    for report in asked:
        found = world.rank(report.text)
        is_hit = any(name in report.gold for key in found for name in sources[key])
        hits += is_hit
        if show and not is_hit:
            print(f"missed {report.id}: {found}")
    decided = [chat for chat in chats if chat.decides and "-amended-" not in chat.id]
    idle = [chat for chat in chats if not chat.decides]
    return {
        "memories": len(sources),
        "kept": sum(chat.id in left for chat in decided) / len(decided),
        "noise": sum(chat.id in left for chat in idle) / len(idle),
        "recall_at_5": hits / len(asked),
        "shown_by_itself": sum(world.is_shown(report.text, report.gold) for report in asked) / len(asked),
    }


def tell_amended(
    root: Path, chats: Sequence[Chat], reports: Sequence[Report], writer: str, show: bool
) -> dict[str, float]:
    asked = [report for report in reports if report.kind == "conversation-amended"]
    topics = {report.topic for report in asked}
    world = World(root, writer)
    world.play([chat for chat in chats if "-amended-" in chat.id or chat.topic not in topics])
    first = superseded = 0
    for report in asked:
        old, new = report.gold
        found = world.rank(report.text)
        sources = world.sources(found[0]) if found else []
        is_first = sources[:1] == [new]
        is_kept = is_first and old in sources
        first, superseded = first + is_first, superseded + is_kept
        if show:
            print(f"{report.id}: first {found[:1]} from {sources}")
            if found:
                print(world.memory.read(found[0]).memory.body)
    return {"amended": len(asked), "amended_first": first, "amended_in_history": superseded}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--writer", choices=("rules", "scripted"), default="rules")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    folder = given.data / "retrieval" / "sde_bench"
    chats, reports = read_chats(folder), read_reports(folder)
    started = process_time()
    with tempfile.TemporaryDirectory() as root:
        figures = tell_recall(Path(root) / "all", chats, reports, given.writer, given.show)
        figures |= tell_amended(Path(root) / "amended", chats, reports, given.writer, given.show)
    figures["cpu_seconds"] = process_time() - started
    if given.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:20} {value:.3f}" if isinstance(value, float) else f"{name:20} {value}")


if __name__ == "__main__":
    main()
