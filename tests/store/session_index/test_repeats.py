"""What is said once is found once, and where it was said; what cannot be read is not forgotten."""

from __future__ import annotations

import json

from tests.store.session_index.sessions import DAY, Machine, line


def codex_line(kind: str, payload: dict[str, object]) -> bytes:
    return json.dumps({"type": kind, "timestamp": DAY.isoformat(), "payload": payload}).encode() + b"\n"


def codex_message(text: str) -> dict[str, object]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def test_what_codex_keeps_at_a_compaction_is_not_said_again(machine: Machine) -> None:
    machine.write(
        "codex",
        codex_line("session_meta", {"id": "c1", "cwd": "/srv/app"}),
        codex_line("response_item", codex_message("walrus")),
        codex_line("response_item", codex_message("penguin")),
        codex_line("compacted", {"message": "", "replacement_history": [codex_message("walrus")]}),
        codex_line("response_item", codex_message("octopus")),
    )
    machine.update()
    assert [hit.turn for hit in machine.search("walrus")] == [1]
    assert [hit.turn for hit in machine.search("octopus")] == [3]


def test_turns_of_a_sub_agent_are_counted_on_their_own(machine: Machine) -> None:
    machine.write(
        "agent", *(line("user", f"step{number}", agentId="a1", isSidechain=True) for number in range(1, 4))
    )
    machine.write(
        "parent",
        *(line("user", f"question{number}") for number in range(1, 5)),
        line("user", "aside", agentId="a2", isSidechain=True),
        line("user", "last"),
    )
    machine.update()
    assert [machine.search(f"step{number}")[0].turn for number in range(1, 4)] == [1, 2, 3]
    machine.write("agent", line("user", "step4", agentId="a1", isSidechain=True))
    machine.update()
    assert machine.search("step4")[0].turn == 4
    assert [machine.search(word)[0].turn for word in ("aside", "last")] == [1, 5]


def test_the_turns_that_a_fork_repeats_are_found_once(machine: Machine) -> None:
    def turns(session: str, *texts: str) -> list[bytes]:
        return [line("user", text, session=session, minute=at) for at, text in enumerate(texts)]

    machine.write("fork", *turns("s2", "a walrus", "two walruses sing", "only the fork: penguin walrus"))
    machine.write("source", *turns("s1", "a walrus", "two walruses sing"))
    machine.write("other", *turns("s3", "hello", "two walruses sing"))
    machine.update()
    assert [hit.session for hit in machine.search('"a walrus"')] == ["s1"]
    # The same words after another beginning are no copy.
    assert {hit.session for hit in machine.search("walruses sing")} == {"s1", "s3"}
    assert [hit.session for hit in machine.search("penguin")] == ["s2"]


def test_sessions_in_a_folder_that_cannot_be_read_are_kept(machine: Machine) -> None:
    (machine.folder / "below").mkdir()
    machine.write("below/s1", line("user", "walrus"))
    path = machine.write("s2", line("user", "penguin", session="s2"))
    machine.update()
    path.unlink()
    machine.index.update([], kept=[machine.folder / "below"])
    assert machine.search("walrus")
    assert not machine.search("penguin")
