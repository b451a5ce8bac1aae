"""A dream without a model: duplicates merged, dates absolute, the stale put aside, and nothing lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from bench.dreams import judge, make_cases
from hypothesis import example, given
from hypothesis import strategies as some

from sevenfold.core.clock import ManualClock
from sevenfold.core.memories import Origin, read_memory, write_memory
from sevenfold.layers.dreams.check import check_dream
from sevenfold.layers.dreams.merge import DreamDraft, MemoryUseFacts, plan_merge, without_repeated_items
from sevenfold.layers.dreams.policy import DreamMemory, DreamSettings

NOW = ManualClock().now()
SETTINGS = DreamSettings()


def kept(
    key: str, body: str, age_days: int = 0, kind: str = "project", **fields: Sequence[str]
) -> DreamMemory:
    name = key.rpartition("/")[2].removesuffix(".md")
    text = write_memory(name, f"on {name}", kind, body, **fields)
    return DreamMemory(
        read_memory(key, text), (NOW - timedelta(days=age_days)).date(), Origin(who="user", why="test")
    )


def dream(*items: DreamMemory, uses: dict[str, MemoryUseFacts] | None = None) -> DreamDraft:
    return plan_merge(items, uses or {}, NOW, SETTINGS)


def body_of(draft: DreamDraft, key: str) -> str:
    return read_memory(key, draft.texts[key]).body.strip()


def test_no_edit_of_two_hundred_labelled_folders_is_harmful() -> None:
    judged = [judge(case) for case in make_cases()]
    assert [edit for one in judged for edit in one.harm] == []
    assert len(judged) >= 200
    assert sum(one.made for one in judged) >= 25


def test_an_exact_duplicate_goes_and_the_newer_stays() -> None:
    draft = dream(kept("release.md", "Run `make check`."), kept("release-2.md", "Run `make check`.", 3))
    assert [*draft.texts] == ["release.md"]
    assert [(reason.key, reason.why, reason.of) for reason in draft.reasons] == [
        ("release-2.md", "duplicate", "release.md")
    ]


def test_what_is_only_nearly_the_same_stays() -> None:
    newer = kept("release.md", "- Always run `make check` before you push.\n- Tags are signed.")
    for older in (
        "- always run `make check` before pushing\n- tags are signed",
        "- Always run `make check` before you push.",
        "- Always run `make check` before you push.\n- Tags are signed.\n- Ann has it.",
        "# Staging\n- Always run `make check` before you push.\n- Tags are signed.",
    ):
        assert len(dream(newer, kept("release-2.md", older, 9)).texts) == 2


def test_a_text_goes_with_another_bullet_space_capital_and_stop() -> None:
    newer = kept("release.md", "- Always run `make check`.\n- Tags are signed.")
    draft = dream(newer, kept("release-2.md", "* always run  `make check`\n\n* tags are signed.", 9))
    assert [*draft.texts] == ["release.md"]


def test_a_name_of_one_letter_is_no_word_whose_capital_is_passed_over() -> None:
    draft = dream(kept("keys.md", "- a: 1\n- A: 1"))
    assert "- A: 1" in draft.texts["keys.md"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The port is 5432.", "The port is 6543."),
        ("Use tabs.", "Do not use tabs."),
        (
            "Dashboards of billing: https://dash.test/billing",
            "Dashboards of search: https://dash.test/search",
        ),
    ],
)
def test_what_differs_in_a_number_a_name_or_a_not_stays_apart(one: str, other: str) -> None:
    draft = dream(kept("port.md", one), kept("port-2.md", other, 1))
    assert len(draft.texts) == 2
    assert not draft.reasons


def test_the_same_words_on_two_subjects_stay_apart() -> None:
    draft = dream(kept("staging-db.md", "The port is 5432."), kept("prod-db.md", "The port is 5432.", 1))
    assert len(draft.texts) == 2


def test_a_merged_memory_keeps_the_rules_of_both() -> None:
    newer = kept("push.md", "Run `make check` before a push.", applies_to=("tool:shell",))
    older = kept("push-2.md", "Run `make check` before a push.", 1, applies_to=("command:git push*",))
    draft = dream(newer, older)
    assert read_memory("push.md", draft.texts["push.md"]).applies_to == ("tool:shell", "command:git push*")


def test_what_belongs_to_the_team_is_neither_merged_nor_merged_into() -> None:
    draft = dream(kept("team/push.md", "Run `make check`."), kept("push.md", "Run `make check`.", 1))
    assert draft.texts.keys() == {"team/push.md", "push.md"}


def test_dates_count_from_the_day_the_memory_was_written() -> None:
    draft = dream(kept("move.md", "We moved yesterday.", 10))
    assert body_of(draft, "move.md") == "We moved on 2026-11-04."


def test_a_list_item_that_is_there_twice_in_one_list_goes() -> None:
    assert without_repeated_items("- Use tabs.\n- It is so.\n- use tabs\n") == "- Use tabs.\n- It is so.\n"


@pytest.mark.parametrize(
    "body",
    [
        "# Staging\n- The port is 80.\n# Production\n- The port is 80.\n",
        "Staging:\n- The port is 80.\n\nProduction:\n- The port is 80.\n",
        "**Staging**\n\n- The port is 80.\n\n**Production**\n\n- The port is 80.\n",
        "The port is 80.\n\nThe port is 80.\n",
        "Status: done\n\nMore.\n\nStatus: done\n",
        "- Parser\n- done\n- Lexer\n- done\n",
        "- Parser\n  - not started\n- Lexer\n  - not started\n",
        "1. Press the button.\n2. Wait a while.\n3. Press the button.\n",
        "# Log\n- Deployed to staging.\n- Deployed to staging.\n",
        "- Ring Ann.\n- Wait for her.\n- Ring Ann.\n",
        "- Copy from A to B.\n- Copy to A from B.\n",
        "- He may deploy.\n- She may deploy.\n",
        "- [ ] back it up\n- [ ] migrate\n- [ ] back it up\n",
        "- Q: why?\n- A: cost\n- Q: why?\n- A: speed\n",
        "- restart api\n- check health\n- restart worker\n- check health\n",
        "- Wake the server.\n- Sleep.\n- Wake the server.\n",
        "- Ann is on call.\n- Ben is on call.\n- Ann is on call.\n",
        "Five runs:\n- 12 ms\n- 12 ms\n- 14 ms\n",
        "Dialogue:\n- How are you?\n- Fine, and you?\n- How are you?\n",
        "- same as before\n- port 81\n- same as before\n",
        "| a | b |\n| a | b |\n",
        "Run:\n```\nmake\nmake\n```\nRun:\n```\nmake\nmake\n```\n",
    ],
)
def test_an_equal_line_elsewhere_stays(body: str) -> None:
    assert without_repeated_items(body) == body


def test_the_line_between_a_list_and_the_next_heading_stays() -> None:
    body = "# Style\n- Use tabs.\n- Use tabs.\n\n# Tests\n- Name them.\n"
    assert without_repeated_items(body) == "# Style\n- Use tabs.\n\n# Tests\n- Name them.\n"


def test_memories_whose_code_differs_in_space_stay_apart() -> None:
    for one, other in (
        ("```py\nif x:\n    a()\n    b()\n```", "```py\nif x:\n    a()\nb()\n```"),
        ("Use `a b`.", "Use `a  b`."),
        ("Run:\n\n    make  x", "Run:\n\n    make x"),
    ):
        assert len(dream(kept("notes.md", one), kept("notes-2.md", other, 9)).texts) == 2


@pytest.mark.parametrize(
    ("kind", "age_days", "use", "goes"),
    [
        ("project", 89, MemoryUseFacts(is_broken=True), False),
        ("project", 90, MemoryUseFacts(is_broken=True), True),
        ("project", 400, MemoryUseFacts(NOW - timedelta(days=9), is_broken=True), False),
        ("project", 359, MemoryUseFacts(), False),
        ("reference", 360, MemoryUseFacts(), True),
        ("reference", 400, MemoryUseFacts(NOW - timedelta(days=30)), False),
        ("user", 4_000, MemoryUseFacts(), False),
        ("feedback", 4_000, MemoryUseFacts(), False),
        ("feedback", 100, MemoryUseFacts(is_broken=True), True),
    ],
)
def test_only_what_is_old_unused_and_not_about_a_person_is_put_aside(
    kind: str, age_days: int, use: MemoryUseFacts, goes: bool
) -> None:
    item = kept("old.md", "The wiki is at wiki.test.", age_days, kind)
    draft = dream(item, uses={"old.md": use})
    assert [*draft.texts] == (["archive/old.md"] if goes else ["old.md"])
    assert [*draft.texts.values()] == [item.memory.text]


def test_what_nobody_vouches_for_does_not_get_into_what_somebody_does() -> None:
    foreign = kept("push-2.md", "Run `make check`.", 1)
    foreign = replace(foreign, origin=Origin(who="sync", why="test", taint=frozenset(["team"])))
    assert dream(kept("push.md", "Run `make check`."), foreign).texts.keys() == {"push.md", "push-2.md"}


LINES = (
    "- The port is 5432.",
    "- the port is 5432",
    "- The port is 6543.",
    "- We moved to Postgres yesterday.",
    "- Release tags are signed by Ann with her own key.",
    "- Release tags are signed by Ann with her key.",
    "\n# Staging",
    "```\nmake check\n```",
    "Plain words about the release.",
)
memories = some.lists(
    some.tuples(
        some.sampled_from(("a.md", "a-2.md", "release.md", "sub/a.md", "team/a.md", "port.md")),
        some.lists(some.sampled_from(LINES), max_size=5).map("\n".join),
        some.integers(0, 500),
        some.sampled_from(("user", "project")),
    ),
    unique_by=lambda item: item[0],
    max_size=6,
)


def test_what_lasts_is_not_put_aside_with_a_stale_memory_that_says_the_same() -> None:
    project, user = (
        kept("a.md", "- The port is 5432.", 360, "project"),
        kept("a-2.md", "- The port is 5432.", 360, "user"),
    )
    assert sorted(dream(project, user).texts) == ["a-2.md", "archive/a.md"]


@example(
    given_memories=[
        ("a-2.md", "- The port is 5432.\n- The port is 6543.\nPlain words about the release.", 0, "user"),
        (
            "a.md",
            "- The port is 5432.\n- The port is 6543.\n- We moved to Postgres yesterday.\n"
            "- We moved to Postgres yesterday.\nPlain words about the release.",
            0,
            "user",
        ),
    ]
)
@given(memories)
def test_no_fact_is_lost_or_invented_and_a_second_dream_has_nothing_left_to_do(
    given_memories: list[tuple[str, str, int, str]],
) -> None:
    items = sorted((kept(*item) for item in given_memories), key=lambda item: item.written, reverse=True)
    draft = dream(*items)
    checked = check_dream({item.memory.key: item for item in items}, draft.texts, draft.reasons, NOW.date())
    assert (checked.refused, checked.gained, checked.losses) == ({}, {}, ())
    days = {str(item.memory.key): item.written for item in items}
    again = [
        DreamMemory(read_memory(key, text), days.get(key, NOW.date()), Origin(who="dream", why="test"))
        for key, text in draft.texts.items()
        if not key.startswith("archive/")
    ]
    again.sort(key=lambda item: item.written, reverse=True)
    second = dream(*again)
    assert second.texts == {item.memory.key: item.memory.text for item in again}
