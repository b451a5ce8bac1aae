"""What past sessions say comes into a dream as evidence, narrowed to the project and without secrets."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from sevenfold.core.clock import ManualClock
from sevenfold.core.errors import StoreError
from sevenfold.core.events import DreamProgressed, Event
from sevenfold.core.messages import Text
from sevenfold.core.text.safe_text import find_fences
from sevenfold.layers.dreams.inputs import (
    MAX_QUESTIONS,
    DreamInputs,
    PastQuestion,
    PastSessions,
    choose_questions,
    read_dream_inputs,
)
from sevenfold.layers.dreams.merge import MemoryUseFacts
from sevenfold.layers.dreams.policy import DreamSettings
from sevenfold.providers.scripted import make_response
from tests.layers.dreams.dream_cases import Bedroom, Sleeper

SECRET = "wJalrXUtnFEMI" + "K7MDENGbPxRfiCYzQ3PLEKEYab"
PORT = "The staging database listens on port 5432."


def tell(room: Bedroom, name: str, *said: str) -> None:
    """A session of Claude Code in the room's project, a minute after whatever was there before."""
    folder = room.root.parent / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    for number, text in enumerate(said):
        room.clock.pass_time(timedelta(minutes=1))
        wire = {
            "type": "user",
            "uuid": f"{name}-{number}",
            "parentUuid": None,
            "sessionId": name,
            "cwd": str(room.root),
            "timestamp": room.clock.now().isoformat(),
            "message": {"role": "user", "content": text},
        }
        lines.append(json.dumps(wire) + "\n")
    (folder / f"{name}.jsonl").write_text("".join(lines), "utf-8")


def past(room: Bedroom, heard: list[Event]) -> PastSessions:
    home = room.root.parent
    return PastSessions(home=home / "home", user_home=home, root=room.root, environ={}, emit=heard.append)


def inputs(room: Bedroom) -> DreamInputs:
    return read_dream_inputs(room.project, room.memory, {}, room.clock.now(), DreamSettings())


def test_a_later_turn_about_a_memory_reaches_the_fork(tmp_path: Path) -> None:
    with Bedroom(tmp_path) as room:
        room.put("staging-db", PORT)
        tell(room, "s1", "The staging database moved to port 6543 this morning.")
        sleeper = Sleeper(room, [make_response("Nothing to do.")])
        room.dream(replace(sleeper.model, find_turns=past(room, room.heard).find_turns))
        asked = sleeper.models.requests[0].messages[-1].blocks
        (fence,) = (
            found for one in asked if isinstance(one, Text) for found in find_fences("turns", one.text)
        )
        assert fence.text.startswith("staging-db.md:\n- 2026-")
        assert "port 6543" in fence.text


def test_other_projects_earlier_turns_and_secrets_stay_out(tmp_path: Path) -> None:
    with Bedroom(tmp_path) as room:
        tell(room, "early", "The staging database listens on port 1111.")
        room.clock.pass_time(timedelta(days=1))
        room.put("staging-db", PORT)
        tell(room, "leaky", f"The staging database has AWS_SECRET_ACCESS_KEY={SECRET}")
        with Bedroom(tmp_path, name="other") as other:
            other.clock = ManualClock(room.clock.now())
            tell(other, "s2", "The staging database listens on port 2222.")
        said = past(room, room.heard).find_turns(choose_questions(inputs(room)))
        assert "1111" not in said
        assert "2222" not in said
        assert SECRET[:13] not in said
        assert "seems to hold a secret" in said


def test_memories_in_doubt_come_first_and_only_a_few_are_asked_about(tmp_path: Path) -> None:
    with Bedroom(tmp_path) as room:
        for number in range(MAX_QUESTIONS + 3):
            room.put(f"service-{number}", f"Service {number} belongs to the payments team.")
        room.put("gone", "Deployments start with scripts/ship_shop.sh.")
        found = inputs(room)
        uses = {**found.uses, "gone.md": MemoryUseFacts(room.clock.now(), is_broken=True)}
        asked = choose_questions(replace(found, uses=uses))
        assert asked[0].key == "gone.md"
        assert len(asked) == MAX_QUESTIONS
        assert "the" not in asked[0].text.split()


def test_a_search_that_fails_costs_the_dream_nothing(tmp_path: Path) -> None:
    def fail(_: object) -> str:
        raise StoreError("the index cannot be opened")

    with Bedroom(tmp_path) as room:
        room.put("staging-db", PORT)
        sleeper = Sleeper(room, [make_response("Nothing to do.")])
        night = room.dream(replace(sleeper.model, find_turns=fail))
        assert night.record.outcome == "unchanged"
        assert any("cannot be opened" in str(event) for event in room.told(DreamProgressed))


def test_no_session_and_no_word_find_nothing(tmp_path: Path) -> None:
    with Bedroom(tmp_path) as room:
        asked = PastQuestion("a.md", "…", room.clock.now())
        assert past(room, room.heard).find_turns([asked]) == ""
        assert past(room, room.heard).find_turns([]) == ""
