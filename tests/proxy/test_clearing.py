"""Old results are cleared and conversations compacted by policy, and the same after a restart."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sevenfold.core.usage import Usage
from sevenfold.proxy.ledger import MOVED_BLOCK, find_break
from sevenfold.proxy.turns import PreparedTurn
from tests.proxy.asking import SIGNED, UNSIGNED, Asker, call, open_layers, render, result, user

CODE = "\n".join(f"def function_{number}(value): return value + {number}" for number in range(500))


def work(
    tmp_path: Path,
    *,
    model: str,
    agent: str = "mini-swe-agent",
    restarts: Sequence[int] = (),
    rounds: int = 12,
) -> list[PreparedTurn]:
    """A session that reads a file a round, in a window that is filled with other things by more than half."""
    home, project = tmp_path / "home", tmp_path / "project"
    layers = open_layers(home)
    asker = Asker(layers, project, agent)
    asked: list[Any] = [user("Read the code. Never touch setup.py.")]
    sent: list[PreparedTurn] = []
    for number in range(rounds):
        if number in restarts:
            layers.close()
            layers, at = open_layers(home), asker.at
            asker = Asker(layers, project, agent)
            asker.at = at
        prepared = asker.prepare(render(asked, model=model))
        tokens = (110_000 if model == UNSIGNED else 910_000) + len(prepared.body) // 3
        layers.answered(prepared, Usage(fresh=tokens, output=9), is_ended=False)
        sent.append(prepared)
        asked += [call(number, f"cat file{number}.py"), result(number, f"# file{number}\n{CODE}")]
    layers.close()
    return sent


def test_near_the_end_of_the_window_old_results_give_way_and_can_be_read_back(tmp_path: Path) -> None:
    sent = work(tmp_path, model=UNSIGNED)
    assert [one.touch.failures for one in sent if one.touch.failures] == []
    cut = next(at for at, one in enumerate(sent) if "clearing" in one.touch.acted)
    marker = json.loads(sent[cut].body)["messages"][2]["content"][0]["content"]
    assert "output cleared, kept in /" in marker
    assert Path(marker.rpartition("kept in ")[2].rstrip("]")).read_text().startswith("# file0")
    for later in sent[cut + 1 :]:
        assert json.loads(later.body)["messages"][2]["content"][0]["content"] == marker
    assert sent[cut].touch.saved["clearing"] > 10_000


def test_on_signed_models_the_provider_clears_and_messages_stay(tmp_path: Path) -> None:
    sent = work(tmp_path, model=SIGNED)
    assert [one.touch.failures for one in sent if one.touch.failures] == []
    cut = next(at for at, one in enumerate(sent) if "clearing" in one.touch.acted)
    for at, one in enumerate(sent):
        body = json.loads(one.body)
        said = [block for message in body["messages"] for block in message["content"] if block != "text"]
        assert sum("output cleared" in str(block) for block in said) == 0
        assert ("context_management" in body) == (at >= cut)
        assert ("context-management-2025-06-27" in one.betas) == (at >= cut)
    edits = [json.loads(one.body)["context_management"]["edits"][-1] for one in sent[cut:]]
    cleared = [cut + at - edit["keep"]["value"] for at, edit in enumerate(edits)]
    assert cleared == sorted(cleared), "what is cleared stays so"
    assert cleared[0] > 0


@pytest.mark.parametrize("model", [UNSIGNED, SIGNED])
def test_a_restart_decides_the_same(tmp_path: Path, model: str) -> None:
    undisturbed = work(tmp_path, model=model)
    (tmp_path / "home").rename(tmp_path / "before")
    disturbed = work(tmp_path, model=model, restarts=range(1, 12))
    assert [one.body for one in disturbed] == [one.body for one in undisturbed]
    assert any(one.touch.cuts for one in disturbed)


def test_an_agent_without_compaction_is_compacted_and_stays_so(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    layers = open_layers(home)
    asker = Asker(layers, project)
    asked: list[Any] = [user("Read the code. Never touch setup.py.")]
    for number in range(20):
        asked += [{"role": "assistant", "content": f"Part {number}. " + "I think about it. " * 900}]
        asked += [user(f"Go on with part {number}.")]
    for end in (39, 41):
        prepared = asker.prepare(render(asked[:end]))
        layers.answered(prepared, Usage(fresh=190_000, output=9), is_ended=False)
    body = json.loads(prepared.body)
    assert prepared.touch.acted[0] == "compaction"
    assert "Never touch setup.py." in body["messages"][0]["content"]
    assert len(body["messages"]) < 41
    assert body["messages"][-1]["content"][0]["text"] == "Go on with part 19."
    # After a restart, and with more to say, the same beginning is sent.
    layers.close()
    layers = open_layers(home)
    asker = Asker(layers, project)
    asked += [{"role": "assistant", "content": "Done."}, user("Thanks.")]
    again = json.loads(asker.prepare(render(asked)).body)
    assert again["messages"][: len(body["messages"]) - 1] == body["messages"][:-1]
    assert len(again["messages"]) == len(body["messages"]) + 2
    layers.close()


def test_on_signed_models_nothing_is_compacted(tmp_path: Path) -> None:
    layers = open_layers(tmp_path / "home")
    asker = Asker(layers, tmp_path / "project")
    asked = [user("Read."), {"role": "assistant", "content": "I did."}, user("Again.")]
    asker.send(render(asked[:1], model=SIGNED), tokens=990_000)
    body = render(asked, model=SIGNED)
    assert json.loads(asker.prepare(body).body)["messages"][:2] == asked[:2]
    layers.close()


CLOCK = "<info-msg>\nIt is currently {}\n</info-msg>"


def goose(time: str, *, model: str, is_later: bool, is_last: bool = False) -> bytes:
    """What goose sends: the block with the time stands in another message of each request."""
    clock = {"type": "text", "text": CLOCK.format(time)}
    words = {"type": "text", "text": "go"}
    if not is_later:
        return render([user([clock, words])], model=model)
    said = {"role": "assistant", "content": [{"type": "text", "text": "I run it."}]}
    use = {"type": "tool_use", "id": "toolu_1", "name": "shell", "input": {"command": "ls"}}
    if is_last:
        again = {**use, "id": "toolu_2"}
        whole = {"role": "assistant", "content": [*said["content"], use]}
        last = result(2, "b")
        last["content"][0]["cache_control"] = {"type": "ephemeral"}
        new = [said, user([clock]), {"role": "assistant", "content": [again]}, last]
        return render([user([words]), whole, result(1, "a"), *new], model=model)
    marked = result(1, "a")
    marked["content"][0]["cache_control"] = {"type": "ephemeral"}
    return render(
        [user([words]), said, user([clock]), {"role": "assistant", "content": [use]}, marked],
        model=model,
    )


def test_the_clock_of_goose_is_put_behind_the_last_message_where_that_is_allowed(tmp_path: Path) -> None:
    layers = open_layers(tmp_path / "home")
    asker = Asker(layers, tmp_path / "project", agent="goose")
    first = asker.send(goose("10:00", model=UNSIGNED, is_later=False), agent_session_id="1")
    second = asker.send(goose("10:05", model=UNSIGNED, is_later=True), agent_session_id="1")
    assert first["messages"][0]["content"][0] == second["messages"][0]["content"][0]
    # The answer that the block splits in two is whole again, as goose sends it from then on.
    assert [len(message["content"]) for message in second["messages"]] == [1, 2, 2]
    assert "10:05" in second["messages"][-1]["content"][-1]["text"]
    assert "10:05" not in json.dumps(second["messages"][:-1])
    layers.close()


def test_on_signed_models_it_stays_and_the_break_says_why(tmp_path: Path) -> None:
    layers = open_layers(tmp_path / "home")
    asker = Asker(layers, tmp_path / "project", agent="goose")
    bodies = [
        goose("10:00", model=SIGNED, is_later=False),
        goose("10:05", model=SIGNED, is_later=True),
        goose("10:06", model=SIGNED, is_later=True, is_last=True),
    ]
    done = [asker.prepare(body, agent_session_id="1") for body in bodies]
    assert [one.body for one in done] == bodies
    for before, after in pairwise(done):
        assert find_break(before.facts, after.facts) == MOVED_BLOCK
        assert after.touch.cuts == ()


def test_what_is_sent_for_goose_begins_with_what_was_sent_before(tmp_path: Path) -> None:
    layers = open_layers(tmp_path / "home")
    asker = Asker(layers, tmp_path / "project", agent="goose")
    second = asker.send(goose("10:05", model=UNSIGNED, is_later=True), agent_session_id="1")
    third = asker.send(goose("10:06", model=UNSIGNED, is_later=True, is_last=True), agent_session_id="1")
    plain = json.dumps(second).replace(', "cache_control": {"type": "ephemeral"}', "")
    before, after = json.loads(plain)["messages"], third["messages"]
    assert before[:-1] == after[: len(before) - 1]
    assert before[-1]["content"][:1] == after[len(before) - 1]["content"]
    layers.close()
