"""What a main turn is sent with: decided once, sent again byte for byte, and nothing where a layer fails."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sevenfold.proxy.bodies import UnfitBody, parse_body
from sevenfold.proxy.layers import ProxyLayers
from sevenfold.proxy.profiles import PROFILES, find_profile
from sevenfold.proxy.state import STATE_LOST
from sevenfold.proxy.turns import CLIENT_CUT
from sevenfold.session.opening import Workspace, WorkspaceOptions
from tests.proxy.asking import SIGNED, UNSIGNED, Asker, call, open_layers, render, result, user

LARGE = "\n".join(f"line {number} of the output" for number in range(4_000))


@pytest.fixture
def layers(tmp_path: Path) -> Generator[ProxyLayers]:
    opened = open_layers(tmp_path / "home")
    yield opened
    opened.close()


@pytest.fixture
def asker(layers: ProxyLayers, tmp_path: Path) -> Asker:
    return Asker(layers, tmp_path / "project")


def remember(tmp_path: Path, key: str, text: str, **fields: Any) -> None:
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    environ = {"SEVENFOLD_HOME": str(tmp_path / "home"), "HOME": str(tmp_path / "home")}
    with Workspace.open(WorkspaceOptions(project=project, environ=environ)) as workspace:
        workspace.memory.add(key, text, description=text[:80], **fields)


@pytest.mark.parametrize("model", [UNSIGNED, SIGNED])
def test_a_large_result_is_stored_at_first_sight_and_its_preview_is_sent_again(
    asker: Asker, model: str
) -> None:
    asked = [user("Look around."), call(1, "find /"), result(1, LARGE)]
    sent = asker.send(render(asked, model=model))
    shown = sent["messages"][2]["content"][0]["content"]
    assert shown.startswith("<persisted-output>")
    path = next(line for line in shown.splitlines() if line.startswith("/"))
    assert Path(path).read_text() == LARGE
    # A list first and a string later, and a breakpoint that moves: the same message.
    marked = [{"type": "text", "text": LARGE}]
    again = asker.send(render([*asked[:2], result(1, marked), call(2, "ls"), result(2, "a")], model=model))
    assert again["messages"][2]["content"][0]["content"] == shown
    assert again["messages"][:2] == sent["messages"][:2]


def test_a_result_that_was_sent_whole_is_never_stored_later(asker: Asker) -> None:
    body = render([user("Look."), call(1, "find /"), result(1, LARGE), call(2, "ls"), result(2, "a")])
    prepared = asker.prepare(body)
    assert prepared.body == body
    assert prepared.touch.cuts == (STATE_LOST,)


def test_without_a_way_back_nothing_is_stored(asker: Asker) -> None:
    odd = [{"name": "post_letter", "input_schema": {"type": "object"}}]
    body = render([user("Look."), call(1, "x"), result(1, LARGE)], tools=odd)
    assert asker.prepare(body).body == body


def test_requests_that_no_layer_acts_on_are_forwarded_as_they_came(asker: Asker) -> None:
    body = b'{ "model":"claude-opus-5-5","max_tokens":1e2, "tools":[{"name":"bash"}],'
    body += b'"messages":[{"content":"hi","role":"user"}]}'
    prepared = asker.prepare(body)
    assert prepared.body == body
    assert not prepared.touch.is_changed


def test_memories_are_added_behind_the_prompt_and_stay_there(asker: Asker, tmp_path: Path) -> None:
    remember(tmp_path, "deploy", "Deploy the frobnicator with `make ship`, never by hand.")
    asked = [user([{"type": "text", "text": "How do I deploy the frobnicator?"}])]
    first = asker.prepare(render(asked, model=SIGNED))
    sent = json.loads(first.body)["messages"][0]["content"]
    assert sent[0] == asked[0]["content"][0]
    assert "make ship" in sent[-1]["text"]
    assert first.touch.acted == ("recall",)
    asker.layers.answered(first, None, is_ended=False)
    asked += [call(1, "make ship"), result(1, "done")]
    again = asker.send(render(asked, model=SIGNED))
    assert again["messages"][0]["content"] == sent
    # It was shown, and is not shown again.
    asked += [{"role": "assistant", "content": "Done."}, user("Deploy the frobnicator again.")]
    third = asker.send(render(asked, model=SIGNED))
    assert [block["text"] for block in third["messages"][-1]["content"]] == ["Deploy the frobnicator again."]


def test_rules_come_with_the_result_of_the_call_they_are_about(asker: Asker, tmp_path: Path) -> None:
    remember(tmp_path, "push", "Never push on a Friday.", applies_to=["command:git push*"])
    asked = [user("Publish it."), call(1, "git push origin"), result(1, "pushed")]
    sent = asker.send(render(asked))["messages"][-1]["content"]
    assert sent[0]["type"] == "tool_result"
    assert "Never push on a Friday" in sent[-1]["text"]


def test_chat_and_responses_get_the_same(layers: ProxyLayers, tmp_path: Path) -> None:
    remember(tmp_path, "deploy", "Deploy the frobnicator with `make ship`, never by hand.")
    asker = Asker(layers, tmp_path / "project", agent="qwen")
    tools: list[Any] = [{"type": "function", "function": {"name": "bash", "parameters": {}}}]
    calls = [{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command":"ls"}'}}]
    asked: list[Any] = [{"role": "system", "content": "Be brief."}, user("How to deploy the frobnicator?")]
    path = "/v1/chat/completions"
    first = asker.send(json.dumps({"model": "gpt-5", "messages": asked, "tools": tools}).encode(), path)
    assert first["messages"][1]["content"].startswith("How to deploy the frobnicator?\n\n<system-reminder>")
    asked += [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": LARGE},
    ]
    second = asker.send(json.dumps({"model": "gpt-5", "messages": asked, "tools": tools}).encode(), path)
    assert second["messages"][:2] == first["messages"]
    assert second["messages"][3]["content"].startswith("<persisted-output>")

    codex = Asker(layers, tmp_path / "project", agent="codex")
    items: list[Any] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Look around."}]},
        {"type": "function_call", "call_id": "f1", "name": "shell", "arguments": '{"command":["ls"]}'},
        {"type": "function_call_output", "call_id": "f1", "output": LARGE},
    ]
    body = {"model": "gpt-5", "input": items, "tools": [{"type": "function", "name": "shell"}]}
    sent = codex.send(json.dumps(body).encode(), "/v1/responses", session_id="s")
    assert sent["input"][2]["output"].startswith("<persisted-output>")


def test_side_requests_pass_untouched(layers: ProxyLayers, tmp_path: Path) -> None:
    remember(tmp_path, "deploy", "Deploy the frobnicator with `make ship`, never by hand.")
    asker = Asker(layers, tmp_path / "project", agent="opencode")
    title = render([user("How do I deploy the frobnicator?")], tools=[])
    assert asker.prepare(title, x_session_id="s").body == title
    counted = render([user("How do I deploy the frobnicator?")])
    assert asker.prepare(counted, "/v1/messages/count_tokens", x_session_id="s").body == counted


def test_a_breakpoint_is_added_once_a_conversation_goes_on(layers: ProxyLayers, tmp_path: Path) -> None:
    asker = Asker(layers, tmp_path / "project", agent="continue")
    marker = {"type": "ephemeral"}
    system = [{"type": "text", "text": "Be brief.", "cache_control": marker}]
    asked = [user([{"type": "text", "text": "go", "cache_control": marker}])]
    first = render(asked, system=system)
    assert asker.prepare(first).body == first
    asked += [call(1, "ls"), result(1, "a")]
    second = asker.send(render(asked, system=system))
    assert second["messages"][-1]["content"][-1]["cache_control"] == marker
    assert asker.send(render(asked, system=system)) == second, "sent again"
    # All four are used: none is added.
    full = [*system, *system]
    asked += [call(2, "ls"), result(2, "b")]
    asked[2] = user([{**asked[2]["content"][0], "cache_control": marker}])
    body = render(asked, system=full)
    assert json.loads(asker.prepare(body).body) == json.loads(body)


def test_a_layer_that_fails_leaves_the_request_alone_and_says_so(
    asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [user("Look around."), call(1, "find /"), result(1, LARGE)]

    def fail(*_: object) -> str:
        raise RuntimeError("the index is gone")

    monkeypatch.setattr(type(asker.layers.memory), "find_rules", fail)
    body = render(asked)
    prepared = asker.prepare(body)
    assert prepared.body == body, "what other layers had decided is left out too"
    assert prepared.touch.failures == ("rules: RuntimeError: the index is gone",)
    assert (b"x-sevenfold-failed", b"rules: RuntimeError: the index is gone") in prepared.touch.make_headers()


def test_what_cannot_be_written_again_as_it_came_is_left_alone() -> None:
    for body in (b'{"a": 1, "a": 2}', b'{"a": NaN}', b"[]", b"{", b"\xff"):
        with pytest.raises(UnfitBody):
            parse_body(body)


def test_a_restart_changes_no_byte(tmp_path: Path) -> None:
    remember(tmp_path, "deploy", "Deploy the frobnicator with `make ship`, never by hand.")
    asked = [user("How do I deploy the frobnicator?"), call(1, "find /"), result(1, LARGE)]
    undisturbed: list[bytes] = []
    for home, restarts in (("home", False), ("other", True)):
        if restarts:
            remember_home(tmp_path, home)
        layers = open_layers(tmp_path / home)
        sent: list[bytes] = []
        for end in (1, 3, 3):
            asker = Asker(layers, tmp_path / "project")
            sent.append(asker.prepare(render(asked[:end])).body)
            if restarts:  # nothing was told of the answer: the process died in the middle of it
                layers = open_layers(tmp_path / home)
        layers.close()
        if restarts:
            assert [one.replace(b"/other/", b"/home/") for one in sent] == undisturbed
        undisturbed = sent


def remember_home(tmp_path: Path, name: str) -> None:
    """The same memories under another home."""
    (tmp_path / "home").rename(tmp_path / "first")
    remember(tmp_path, "deploy", "Deploy the frobnicator with `make ship`, never by hand.")
    (tmp_path / "home").rename(tmp_path / name)
    (tmp_path / "first").rename(tmp_path / "home")


def test_lost_state_is_one_announced_cut(tmp_path: Path) -> None:
    layers = open_layers(tmp_path / "home")
    asked = [user("Look."), call(1, "find /"), result(1, LARGE)]
    asker = Asker(layers, tmp_path / "project")
    asker.send(render(asked))
    layers.close()
    (state,) = (tmp_path / "home/proxy/state").glob("*.jsonl")
    state.write_bytes(b"\0\0 damaged\n" + state.read_bytes())
    layers = open_layers(tmp_path / "home")
    asker = Asker(layers, tmp_path / "project")
    asked += [call(2, "ls"), result(2, "a")]
    body = render(asked)
    prepared = asker.prepare(body)
    assert (prepared.body, prepared.touch.cuts) == (body, (STATE_LOST,))
    layers.answered(prepared, None, is_ended=False)
    asked += [call(3, "ls"), result(3, "b")]
    assert asker.prepare(render(asked)).touch.cuts == ()
    layers.close()


def test_a_client_that_compacts_is_a_cut_and_no_error(layers: ProxyLayers, tmp_path: Path) -> None:
    asker = Asker(layers, tmp_path / "project", agent="opencode")
    asker.send(render([user("Look."), call(1, "ls"), result(1, "a")]), x_session_id="s")
    prepared = asker.prepare(render([user("Summary: nothing.")]), x_session_id="s")
    assert prepared.touch.cuts == (CLIENT_CUT,)
    assert prepared.touch.failures == ()


def test_conversations_are_never_joined_across_keys_agents_or_prompts(
    layers: ProxyLayers, tmp_path: Path
) -> None:
    asked = [user("Look."), call(1, "ls"), result(1, "a")]
    project = tmp_path / "project"
    one = Asker(layers, project).prepare(render(asked[:1]))
    layers.answered(one, None, is_ended=False)
    same = Asker(layers, project).prepare(render(asked))
    other_key = Asker(layers, project, key="sk-2").prepare(render(asked))
    other_system = Asker(layers, project).prepare(render(asked, system="Be long."))
    other_tools = Asker(layers, project).prepare(render(asked, tools=[{"name": "shell"}]))
    names = [each.touch.conversation for each in (one, same, other_key, other_system, other_tools)]
    assert names[0] == names[1]
    assert len(set(names)) == 4


def test_conversations_that_ended_long_ago_are_removed(tmp_path: Path) -> None:
    layers = open_layers(tmp_path / "home")
    Asker(layers, tmp_path / "project").send(render([user("Look.")]))
    now = datetime.now(UTC)
    assert layers.store.prune(now + timedelta(days=29)) == 0
    assert layers.store.prune(now + timedelta(days=31)) == 1
    layers.close()


def test_every_profile_says_what_may_be_done() -> None:
    for profile in PROFILES:
        assert profile.layers, f"{profile.name} has no entry"
    claude, aider = find_profile("claude"), find_profile("aider")
    assert claude is not None
    assert aider is not None
    assert not {"spill", "recall", "breakpoints", "compaction"} & claude.layers
    assert "spill" not in aider.layers
    assert replace(claude, layers=frozenset()).layers == frozenset()
