"""Where a memory came from, as its history tells it."""

from __future__ import annotations

from sevenfold.core.memories import Origin
from sevenfold.store.memory.records import read_origin, write_origin

SAID = Origin(
    who="agent", why="saved by the agent", said_by="user", evidence=("Wir deployen nur dienstags.",)
)


def test_the_users_sentence_is_written_down_and_read_again() -> None:
    assert read_origin(write_origin(SAID)) == SAID


def test_an_origin_of_an_older_version_has_no_evidence() -> None:
    assert read_origin({"who": "user", "why": "told so", "said_by": "user"}).evidence == ()


def test_an_origin_without_evidence_is_written_as_before() -> None:
    plain = Origin(who="user", why="told so", said_by="user")
    assert write_origin(plain) == {"who": "user", "why": "told so", "said_by": "user"}
