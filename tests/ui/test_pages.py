"""What the page shows and changes, asked without HTTP: the same functions answer a browser."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sevenfold.core.errors import FileMissing, InputError
from sevenfold.core.memories import TEAM_FOLDER, TEAM_PREFIX, Origin
from sevenfold.core.messages import Message, ToolResult, ToolUse
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.changes import Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.team.client.local_state import Membership, TokenStore, write_membership
from sevenfold.team.client.ports import choose_copy_key
from sevenfold.team.protocol import RepoId, TeamKey, compute_checksum
from sevenfold.ui.app import PageCall
from sevenfold.ui.pages import UiPages, open_pages
from sevenfold.ui.sessions import thin_peaks
from tests.session.talk import FRAME
from tests.ui.example import HOSTILE, LARGE, Machine, make_machine


@dataclass
class Asked:
    pages: UiPages
    machine: Machine

    def get(self, path: str, **fields: object) -> Any:
        return self._call("GET", path, fields)

    def post(self, path: str, **fields: object) -> Any:
        return self._call("POST", path, fields)

    def _call(self, method: str, path: str, fields: dict[str, object]) -> Any:
        (route,) = (one for one in self.pages.routes if (one.method, one.path) == (method, path))
        # As a browser would get it: everything is JSON.
        return json.loads(json.dumps(route.handle(PageCall(fields))))

    def sessions(self) -> list[dict[str, Any]]:
        self.pages.sessions.join()
        return self.get("sessions")["sessions"]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return make_machine(tmp_path)


@pytest.fixture
def asked(machine: Machine) -> Generator[Asked]:
    with machine.workspace() as workspace, open_pages(workspace) as pages:
        yield Asked(pages, machine)


def test_the_list_has_our_sessions_and_those_of_other_agents_with_their_bills(machine: Machine) -> None:
    ours = machine.talk(3)
    machine.add_sample()
    with machine.workspace() as workspace, open_pages(workspace) as pages:
        asked = Asked(pages, machine)
        found = {one["id"]: one for one in asked.sessions() if not one["sub_agent"]}
        own, sample = found.pop(ours), found.popitem()[1]
        assert (own["agent"], own["project"], own["calls"]) == ("sevenfold", str(machine.project), 3)
        assert len(own["spark"]) == 3
        assert own["usd"] > 0
        assert (sample["agent"], sample["breaks"]) == ("claude-code", 1)
        assert sample["lost_usd"] > 0
        detail = asked.get("session", key=sample["key"])
        assert (len(detail["breaks"]), len(detail["cuts"])) == (1, 1)
        with pytest.raises(FileMissing):
            asked.get("session", key="../../etc/passwd")


def spell(message: Message) -> list[tuple[str, str]]:
    """What of a message can be compared with what the page shows."""
    return [
        (block.name, block.id)
        if isinstance(block, ToolUse)
        else ("result", str(block.content))
        if isinstance(block, ToolResult)
        else ("text", getattr(block, "text", ""))
        for block in message.blocks
    ]


def shown(asked: Asked, item: dict[str, Any], fields: dict[str, object]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for place, block in enumerate(item["blocks"]):
        if block["kind"] == "tool_use":
            found.append((block["tool"], ""))
        else:
            text = asked.get("block", n=item["n"], block=place, **fields)["text"]
            found.append(("result" if block["kind"] == "tool_result" else "text", text))
    return found


@pytest.mark.parametrize(
    "settings",
    [{}, {"models": {FRAME.model: {"window_tokens": 40_000}}, "microcompact": {"enabled": False}}],
    ids=["stored result", "compacted"],
)
def test_each_request_of_ours_is_shown_as_it_was_sent(
    machine: Machine, settings: dict[str, dict[str, object]]
) -> None:
    session = machine.talk(6, **settings)
    with machine.workspace() as workspace, open_pages(workspace) as pages:
        asked = Asked(pages, machine)
        (listed,) = asked.sessions()
        for call, request in enumerate(machine.sent[session]):
            fields: dict[str, object] = {"key": listed["key"], "view": "sent", "call": call}
            answer = asked.get("messages", limit=200, **fields)
            assert answer["calls"] == len(machine.sent[session])
            texts = [shown(asked, item, fields) for item in answer["items"]]
            wanted = [
                [(kind, "" if kind in ("Read", "Bash") else text) for kind, text in spell(message)]
                for message in request.messages
            ]
            assert texts == wanted


def test_what_was_said_is_whole_with_each_cut_explained(machine: Machine) -> None:
    machine.talk(6, models={FRAME.model: {"window_tokens": 40_000}}, microcompact={"enabled": False})
    with machine.workspace() as workspace, open_pages(workspace) as pages:
        asked = Asked(pages, machine)
        (listed,) = asked.sessions()
        answer = asked.get("messages", key=listed["key"], limit=200)
        messages = [item for item in answer["items"] if item["kind"] == "message"]
        assert [item["source"] for item in messages[:3]] == ["human", "model", "tool"]
        assert HOSTILE in messages[0]["blocks"][0]["text"]
        assert len(messages) == 13
        assert "compaction" in messages[0]["note"]
        (cut, *_) = answer["cuts"]
        assert cut["layer"] == 4
        assert any("tokens before it" in line for line in cut["lines"])
        assert any(line.startswith("compaction by ") for line in cut["lines"])
        page = asked.get("messages", key=listed["key"], **{"from": 2, "limit": 3})
        assert [item["n"] for item in page["items"]] == [2, 3, 4]


def test_a_stored_result_is_said_whole_and_sent_as_a_preview(machine: Machine) -> None:
    machine.talk(4)
    with machine.workspace() as workspace, open_pages(workspace) as pages:
        asked = Asked(pages, machine)
        (listed,) = asked.sessions()
        items = asked.get("messages", key=listed["key"], limit=200)["items"]
        (stored,) = [item for item in items if item["blocks"] and "in a file" in item["blocks"][0]["note"]]
        answer = asked.get("block", key=listed["key"], n=stored["n"], block=0)
        assert (answer["text"], answer["is_stored"]) == (LARGE, True)
        sent = asked.get("messages", key=listed["key"], view="sent", limit=200)["items"]
        (preview,) = [item for item in sent if item["blocks"] and "a preview of" in item["blocks"][0]["note"]]
        assert preview["blocks"][0]["chars"] < len(LARGE)


def test_another_agents_session_is_shown_as_said_and_as_sent(machine: Machine) -> None:
    machine.add_sample()
    with machine.workspace() as workspace, open_pages(workspace) as pages:
        asked = Asked(pages, machine)
        main = next(one for one in asked.sessions() if not one["sub_agent"])
        said = asked.get("messages", key=main["key"], limit=200)
        (cut,) = said["cuts"]
        first = asked.get("messages", key=main["key"], view="sent", call=0, limit=200)
        before = asked.get("messages", key=main["key"], view="sent", call=cut["call"] - 1, limit=200)
        after = asked.get("messages", key=main["key"], view="sent", call=cut["call"], limit=200)
        assert first["total"] < before["total"]
        assert after["total"] < before["total"]
        assert any(item["source"] == "summary" for item in after["items"])
        last = asked.get("messages", key=main["key"], view="sent", limit=200)
        assert last["total"] > after["total"]
        assert "summary" in said["items"][0]["note"]
        assert any(hit["key"] == main["key"] for hit in asked.get("search", q="extremes")["hits"])


def test_memories_are_reviewed_trusted_reverted_and_all_of_it_is_undone(asked: Asked) -> None:
    asked.machine.add_memories()
    listed = {one["key"]: one for one in asked.get("memories")["memories"]}
    assert listed["heard.md"]["state"] == "not trusted"
    (waiting,) = asked.get("review")["waiting"]
    assert (waiting["taint"], HOSTILE in waiting["changes"][0]["diff"]) == (["web"], True)
    asked.post("review/accept", id=waiting["id"])
    assert asked.get("memory", key="from-the-web.md")["trusted"]
    asked.post("memory/undo")
    assert [one["id"] for one in asked.get("review")["waiting"]] == [waiting["id"]]
    asked.post("review/reject", id=waiting["id"])
    assert asked.get("review")["waiting"] == []
    asked.post("memory/trust", key="heard.md")
    assert asked.get("memory", key="heard.md")["trusted"]
    edit = next(one for one in asked.get("memory", key="release.md")["log"] if one["why"] == "edited by hand")
    assert "+Releases are cut from main with `make ship`." in asked.get("diff", id=edit["id"])["diff"]
    asked.post("memory/revert", id=edit["id"])
    assert "make release" in asked.get("memory", key="release.md")["text"]
    asked.post("memory/restore", key="release.md", id=edit["id"])
    assert "make ship" in asked.get("memory", key="release.md")["text"]
    assert {line["who"] for line in asked.get("blame", key="release.md")["lines"]} == {"user"}
    asked.post("memory/undo")
    asked.post("memory/redo")
    assert "make ship" in asked.get("memory", key="release.md")["text"]
    # The command line sees the same history.
    with MemoryDir.for_project(asked.machine.project, environ=asked.machine.environ) as memory:
        assert [one.step for one in memory.log()[:2]] == ["redo", "undo"]


def test_the_recall_explorer_says_what_a_prompt_brings_and_why(asked: Asked) -> None:
    asked.machine.add_memories()
    answer = asked.get("recall", q="how do we release a version?")
    assert {one["key"] for one in answer["found"] if one["is_recalled"]} == {"release.md", "release-notes.md"}
    assert answer["found"][0]["words"]
    assert asked.get("recall", q="what is for lunch")["found"] == []
    assert asked.get("memories/search", q="changelog")["keys"] == ["release-notes.md"]
    with pytest.raises(InputError):
        asked.get("recall", q="")
    assert all(one["uses"]["recalled"] == 0 for one in asked.get("memories")["memories"])
    with pytest.raises(FileMissing):
        asked.get("memories", scope="user")


def test_rules_say_when_they_fire_and_how_often_they_did(asked: Asked) -> None:
    asked.machine.add_memories()
    (rule,) = asked.get("rules")["rules"]
    assert (rule["key"], rule["rule"]["conditions"]) == ("push-rule.md", ["command:git push*"])
    assert rule["rule"]["fires"]
    assert rule["uses"]["shown"] == 0


def test_a_dream_is_shown_with_its_diff_and_undone_as_one(asked: Asked) -> None:
    with MemoryDir.for_project(asked.machine.project, environ=asked.machine.environ) as memory:
        memory.add("build", "The build needs Python 3.11.\n")
        memory.add("build-again", "The build needs Python 3.11.\n")
    asked.machine.add_dream()
    (dream,) = asked.get("dreams")["dreams"]
    assert dream["outcome"] == "completed"
    found = asked.get("dream", id=dream["id"])
    assert found["diff"]
    assert not found["is_undone"]
    before = {one["key"] for one in asked.get("memories")["memories"]}
    asked.post("dream/undo", id=dream["id"])
    assert asked.get("dream", id=dream["id"])["is_undone"]
    assert {one["key"] for one in asked.get("memories")["memories"]} == before | {
        "build.md",
        "build-again.md",
    }
    with pytest.raises(InputError):
        asked.post("dream/stop")
    with pytest.raises(InputError):
        asked.post("dream/undo", id="none")


def test_the_kill_switch_stops_background_work_of_all_processes(asked: Asked) -> None:
    asked.machine.add_spend()
    state = asked.get("spend")
    assert (state["background"], state["kinds"]["notes"]["calls"]) == (True, 2)
    assert len(state["days"]) == 2
    stopped = asked.post("spend/stop")
    assert not stopped["background"]
    assert "on the page" in stopped["stopped"]
    assert asked.get("spend") == stopped
    assert asked.post("spend/resume")["background"]
    with pytest.raises(InputError):
        asked.post("spend/forgive", kind="notes")


def test_a_conflict_with_a_teammate_is_resolved(asked: Asked) -> None:
    assert asked.get("team") == {"joined": None}
    workspace = asked.pages.workspace
    ours = "---\nname: port\n---\n\nThe port is 8080.\n"
    copy = choose_copy_key(TeamKey("port.md"), compute_checksum(ours), {})
    workspace.memory.add("team/port", "The port is 9090.\n")
    person = Origin(who="user", why="kept", said_by="user", is_accepted=True)
    workspace.memory.commit([Write(f"{TEAM_PREFIX}{copy}", ours, None)], person)
    place = Membership(url="http://127.0.0.1:9", repo=RepoId("r1"), repo_name="app", org="acme", member="ada")
    with workspace.project.memory_state.subfolder(TEAM_FOLDER) as folder:
        write_membership(folder, place)
    with Folder.open(workspace.home, create=True) as home:
        TokenStore(home).write(place.url, place.org, "sf_" + "a" * 43)
    (conflict,) = asked.get("team")["conflicts"]
    assert (conflict["memory"], "-The port is 9090." in conflict["diff"]) == ("port.md", True)
    with pytest.raises(InputError):
        asked.post("team/resolve", copy=conflict["copy"], take="neither", seen=conflict["seen"])
    done = asked.post("team/resolve", copy=conflict["copy"], take="copy", seen=conflict["seen"])
    assert done["waiting"]  # nobody answers there, and it is settled all the same
    assert asked.get("team")["conflicts"] == []
    assert "8080" in workspace.memory.read("team/port.md").memory.text


def test_a_sparkline_keeps_the_peaks() -> None:
    values = [*range(100), 5_000, *range(100)]
    assert len(thin_peaks(values)) == 40
    assert max(thin_peaks(values)) == 5_000
    assert thin_peaks([1, 2]) == [1, 2]
    assert thin_peaks([]) == []
