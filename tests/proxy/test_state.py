"""Conversations are found by how they begin, however many there are, and without waiting for one another."""

from __future__ import annotations

import threading
from collections.abc import Generator
from pathlib import Path

import pytest

from sevenfold.core.settings import Settings
from sevenfold.proxy.memory import ProxyMemory
from sevenfold.proxy.requests import RequestFacts
from sevenfold.proxy.state import MAX_ALIKE, MAX_LOADED_STATES, ConversationState, StateStore
from sevenfold.store.files.folder import Folder
from sevenfold.store.project.settings_files import USER_SETTINGS_FILE
from tests.proxy.asking import NOW, Asker, call, open_layers, render, result, user

FACTS = RequestFacts(wire="messages", purpose="turn", system="s", tools="t")


@pytest.fixture
def folder(tmp_path: Path) -> Generator[Folder]:
    with Folder.open(tmp_path / "proxy", create=True) as opened:
        yield opened


def find(store: StateStore, *keys: str) -> ConversationState:
    """The conversation of a request with these messages, which is then on record."""
    state = store.find("client", FACTS, keys)
    common = state.count_shared(keys)
    line = {"kind": "request", "at": NOW.isoformat(), "keep": common, "add": keys[common:]}
    store.record(state, line, is_durable=False)
    return state


@pytest.mark.parametrize("count", [MAX_ALIKE, MAX_LOADED_STATES + 20])
def test_many_conversations_of_one_client_stay_apart(folder: Folder, count: int) -> None:
    store = StateStore(folder)
    names = [find(store, f"k{number}").name for number in range(count)]
    assert len(set(names)) == count
    assert [find(store, f"k{number}", "more").name for number in range(count)] == names
    store.close()


def test_they_are_found_again_after_a_restart(folder: Folder) -> None:
    before, after = StateStore(folder), StateStore(folder)
    names = [find(before, f"k{number}").name for number in range(MAX_ALIKE)]
    assert [find(after, f"k{number}", "more").name for number in range(MAX_ALIKE)] == names
    before.close()
    after.close()


def test_a_conversation_that_is_read_from_disk_holds_up_no_other(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = StateStore(folder)
    began, may_end, in_time = threading.Event(), threading.Event(), list[bool]()
    read = StateStore._load  # pyright: ignore[reportPrivateUsage]

    def read_slowly(self: StateStore, state: ConversationState) -> None:
        if threading.current_thread() is not threading.main_thread():
            began.set()
            in_time.append(may_end.wait(60))
        read(self, state)

    monkeypatch.setattr(StateStore, "_load", read_slowly)
    slow = threading.Thread(target=lambda: find(store, "slow"))
    slow.start()
    assert began.wait(60)
    assert store.find("another client", FACTS, ("k",)).is_new
    may_end.set()
    slow.join(60)
    assert in_time == [True]
    store.close()


def test_a_request_reads_settings_once_and_takes_in_changed_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = open_layers(tmp_path / "home")
    read, seen = ProxyMemory.read_settings, list[str]()

    def read_noted(self: ProxyMemory, cwd: str) -> Settings:
        seen.append(cwd)
        return read(self, cwd)

    monkeypatch.setattr(ProxyMemory, "read_settings", read_noted)
    asker = Asker(layers, tmp_path / "project")
    text = "\n".join(f"line {number}" for number in range(1_000))
    asked = [user("Look."), call(1, "ls"), result(1, text)]
    assert asker.send(render(asked))["messages"] == asked
    assert len(seen) == 1
    settings = tmp_path / "home" / USER_SETTINGS_FILE
    settings.parent.mkdir(exist_ok=True)
    settings.write_text("[tool_results]\nlimit_chars = 2000\n")
    asked += [call(2, "ls"), result(2, text + "again")]
    sent = asker.send(render(asked))["messages"]
    assert sent[2] == asked[2]
    assert sent[4]["content"][0]["content"].startswith("<persisted-output>")
    layers.close()
