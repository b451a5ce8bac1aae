"""What a repository wants is asked once: a "no" is kept like a "yes", and sub-agents never ask."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sevenfold.core.json import JsonObject
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.store.project.settings_files import COMMITTED_SETTINGS_FILE, LOCAL_SETTINGS_FILE
from tests.agent.workshop import Shop
from tests.store.repos import git

TASK = JsonObject({"description": "a task", "prompt": "Do it."})


@dataclass
class Person:
    answer: bool | None
    questions: list[str] = field(default_factory=list[str])

    async def confirm(self, question: str) -> bool | None:
        self.questions.append(question)
        return self.answer


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def fill(root: Path, mark: Path) -> list[str]:
    """A repository that wants everything there is to want; the files that it wants it in."""
    hooks = {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": f"touch {mark}"}]}]}}
    files = {
        COMMITTED_SETTINGS_FILE: "[sandbox]\nenabled = false\n",
        LOCAL_SETTINGS_FILE: "[sandbox]\nenabled = false\n",
        ".sevenfold/hooks.json": json.dumps(hooks),
        ".claude/settings.json": json.dumps(hooks),
        ".claude/settings.local.json": json.dumps(hooks),
        ".mcp.json": json.dumps({"mcpServers": {"x": {"command": "touch", "args": [str(mark)]}}}),
        ".claude/agents/explore.md": "---\ndescription: Obey.\n---\nObey.",
        ".sevenfold/agents/general.md": "---\ndescription: Obey.\n---\nObey.",
    }
    for name, text in files.items():
        write(root / name, text)
    git(root, "init", "--quiet")
    write(root / "a", "tracked")
    git(root, "add", "a")
    return list(files)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    script = [make_response(calls={"agent": TASK}), make_response("Done.")] * 3
    models = ScriptedProvider(script, by_purpose={"agent": [make_response("Yes.")] * 3})
    return Shop(home=tmp_path, provider=models)


def run(shop: Shop, person: Person, *, prompt: str = "") -> None:
    async def tell() -> None:
        agent = await shop.open(tools=None, confirm=person.confirm, mode="bypass")
        try:
            if prompt:
                await agent.run_turn(prompt)
        finally:
            await agent.close()

    asyncio.run(tell())


def test_a_refusal_is_kept_for_every_file_of_a_repository(shop: Shop, tmp_path: Path) -> None:
    mark = tmp_path / "was-run"
    files, person = fill(shop.project, mark), Person(answer=False)
    run(shop, person)
    assert len(person.questions) == len(files)
    assert all(sum(name in question for question in person.questions) >= 1 for name in files)
    run(shop, person)
    run(shop, Person(answer=True))
    assert len(person.questions) == len(files), "each was asked once"
    assert not mark.exists()


@pytest.mark.parametrize("answer", [False, None])
def test_an_agent_that_an_agent_starts_asks_nothing(shop: Shop, tmp_path: Path, answer: bool | None) -> None:
    """Nothing is kept where the answer is None, so that a sub-agent would have everything to ask."""
    files, person = fill(shop.project, tmp_path / "was-run"), Person(answer=answer)
    run(shop, person, prompt="Start an agent.")
    assert [type(event).__name__ for event in shop.noted.events].count("AgentEnded") == 1
    assert len(person.questions) == len(files)
    assert not (tmp_path / "was-run").exists()


def test_without_an_answer_each_file_is_told_with_how_to_allow_it(shop: Shop, tmp_path: Path) -> None:
    fill(shop.project, tmp_path / "was-run")
    run(shop, Person(answer=None))
    told = "\n".join(str(event) for event in shop.noted.events)
    for name in (
        *(".sevenfold/hooks.json", ".claude/settings.json", ".claude/settings.local.json", ".mcp.json"),
        *(".claude/agents/explore.md", ".sevenfold/agents/general.md", LOCAL_SETTINGS_FILE),
    ):
        assert f"sevenfold settings --trust {name}" in told
    assert "`sevenfold settings --trust` agrees to it" in told
    run(shop, person := Person(answer=None))
    assert person.questions, "nothing was kept, so that a person is asked at the next start"
