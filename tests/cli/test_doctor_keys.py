"""What doctor says of keys and what a chat says of them is the same."""

from __future__ import annotations

from sevenfold.agent.face.welcome import LOOKED_FOR
from sevenfold.cli.doctor_machine import ADDRESSES, KEYS, check_keys


def test_doctor_looks_for_what_a_chat_looks_for() -> None:
    assert sorted((*KEYS, *ADDRESSES)) == sorted(LOOKED_FOR)
    for name in LOOKED_FOR:
        assert [finding.level for finding in check_keys({name: "x"})] == ["fine"]
