"""Dreams without a model: labelled memories, and how many of the edits were harmful.

    python bench/dreams.py [--show] [--json]

Each case is a folder of one or two memories and what a dream may make of it. Most are to stay as they are.
The rules were tuned on the kinds marked `tuned`; the others were written afterwards and only measured.

    cases      folders
    wanted     of these, folders in which an edit is right
    made       right edits that were made
    harmful    edits that are none of those that the label allows: wanted 0
    precision  made / (made + harmful)
    recall     made / wanted
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import cast

from sevenfold.core.memories import Origin, read_memory, write_memory
from sevenfold.layers.dreams.merge import plan_merge
from sevenfold.layers.dreams.policy import DreamMemory, DreamSettings

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
DAY = date(2026, 11, 10)
"""When each memory was written: a Tuesday."""
GONE = "(gone)"


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamCase:
    """Bodies by name, and what each may become; a memory that is not named has to stay as it is."""

    kind: str
    language: str
    bodies: dict[str, str]
    allowed: dict[str, tuple[str, ...]]
    is_dated: bool = True


def stay(kind: str, language: str, body: str, other: str = "", name: str = "notes-2") -> DreamCase:
    bodies = {"notes": body} | ({name: other} if other else {})
    return DreamCase(kind=kind, language=language, bodies=bodies, allowed={})


def become(kind: str, language: str, body: str, *after: str) -> DreamCase:
    return DreamCase(kind=kind, language=language, bodies={"notes": body}, allowed={"notes": after})


# The kinds that the rules were tuned on.


def events() -> Iterator[DreamCase]:
    when = {"yesterday": "on 2026-11-09", "3 days ago": "on 2026-11-07", "last month": "in October 2026"}
    told = (
        "We moved the API to Go {}.",
        "{} Ann merged the parser.",
        "The build broke {}, and Ben fixed it.",
    )
    for text, (said, means) in product(told, when.items()):
        before, after = text.format(said), text.format(means)
        yield become("events", "en", before[0].upper() + before[1:], after[0].upper() + after[1:])


def nowadays() -> Iterator[DreamCase]:
    for text in (
        "Today we use Postgres.",
        "The parser that is used today was written by Ann.",
        "Most users are on v2 today.",
        "The API works today, but not for long.",
        "What we have today was built in 2024.",
        "This is how it is done today.",
        "Today the tests take ten minutes.",
        "The design of today is simpler.",
        "Until today nobody has seen it fail.",
        "Today's schema has four tables.",
        "It is slower today than it was with MySQL.",
        "This week's plan is on the wall.",
    ):
        yield stay("nowadays", "en", text)


def habits() -> Iterator[DreamCase]:
    for text in (
        "Always compare with yesterday.",
        "Each morning we look at what failed last night.",
        "Every Monday the numbers of last week are sent.",
        "We usually ship what was merged yesterday.",
        "Ann reviews what was merged last week.",
        "The job deletes what was created 30 days ago.",
        "The nightly run uses the data of yesterday.",
        "Whoever broke the build yesterday fixes it.",
    ):
        yield stay("habits", "en", text)


_ITEMS = {
    "en": ("Use tabs in Go.", "The port is 5432."),
    "de": ("In Go Tabs benutzen.", "Der Port ist 5432."),
    "es": ("Usar tabuladores en Go.", "El puerto es 5432."),
    "fr": ("Utiliser des tabulations en Go.", "Le port est 5432."),
    "pt": ("Usar tabs em Go.", "A porta é 5432."),
    "zh": ("Go 代码 使用 制表符。", "端口 是 5432。"),
    "ja": ("Go では タブ を 使う。", "ポート は 5432。"),
    "ru": ("В Go использовать табуляцию.", "Порт 5432 открыт."),
}


def repeated_items() -> Iterator[DreamCase]:
    for language, (one, other) in _ITEMS.items():
        yield become("repeated items", language, f"- {one}\n- {other}\n- {one}", f"- {one}\n- {other}")


def equal_lines_elsewhere() -> Iterator[DreamCase]:
    frames = (
        "# Staging\n- {0}\n\n# Production\n- {0}",
        "Staging:\n- {0}\n\nProduction:\n- {0}",
        "{0}\n\n{1}\n\n{0}",
    )
    for (language, items), frame in product(_ITEMS.items(), frames):
        yield stay("equal lines elsewhere", language, frame.format(*items))


def duplicates() -> Iterator[DreamCase]:
    for language, (one, other) in _ITEMS.items():
        body = f"- {one}\n- {other}"
        yield DreamCase(
            kind="duplicates",
            language=language,
            bodies={"notes": body, "notes-2": body},
            allowed={"notes-2": (GONE,)},
        )


def differing() -> Iterator[DreamCase]:
    pairs = (
        ("en", "The port is 5432.", "The port is 6543."),
        ("en", "Use tabs.", "Do not use tabs."),
        ("en", "Copy from A to B.", "Copy to A from B."),
        ("en", "He may deploy.", "She may deploy."),
        ("de", "Der Port ist 5432.", "Der Port ist 5433."),
        ("de", "Immer Tabs benutzen.", "Nie Tabs benutzen."),
        ("es", "Usar pnpm.", "No usar pnpm."),
        ("fr", "Déployer le lundi.", "Déployer le mardi."),
        ("pt", "Usar tabs.", "Não usar tabs."),
        ("zh", "使用 制表符。", "不 使用 制表符。"),
        ("ja", "タブ を 使う。", "タブ を 使わない。"),
        ("ru", "Порт открыт.", "Порт закрыт."),
    )
    for language, one, other in pairs:
        yield stay("differing", language, one, other)


# The kinds that were written afterwards.


def plans() -> Iterator[DreamCase]:
    for text, after in (
        ("The freeze starts tomorrow.", "The freeze starts on 2026-11-11."),
        ("Ann leaves next week.", "Ann leaves in the week of 2026-11-16."),
        ("The certificate expires next month.", "The certificate expires in December 2026."),
        ("We will ship v2 tomorrow.", "We will ship v2 on 2026-11-11."),
        ("The freeze ends next Friday.", "The freeze ends next Friday (said on 2026-11-10)."),
    ):
        yield become("plans", "en", text, after)


def instructions() -> Iterator[DreamCase]:
    verbs = ("Delete", "Export", "Compare with", "Restore", "Look at", "Send", "Ignore")
    whens = ("the files changed yesterday", "what was logged last week", "the orders placed 2 days ago")
    for verb, when in product(verbs, whens):
        yield stay("instructions", "en", f"{verb} {when}.")


def definitions() -> Iterator[DreamCase]:
    for text in (
        "The report covers yesterday.",
        "The default range is last month.",
        "`since` takes a date; yesterday was meant as an example.",
        "The filter has the presets today, yesterday and last week.",
        "A session that started yesterday counts as old.",
        "Records older than 30 days ago are dropped.",
        "The widget shows last year against this year.",
        "The query returns what was sold yesterday.",
        "Retention: everything from last month.",
        "The label reads yesterday or today.",
        "The column `due` is next week at most.",
        "Cache entries live until tomorrow.",
        "Invoices are sent next month.",
        "An order that was paid yesterday ships today.",
        "Yesterday: the day before the run.",
        "The parser knows 'last week' and 'two days ago'.",
    ):
        yield stay("definitions", "en", text)


def suppositions() -> Iterator[DreamCase]:
    for text in (
        "If the build failed yesterday, run it again.",
        "When a key was rotated last week, ask Ann.",
        "Was it deployed yesterday?",
        "It might have been merged last month.",
        "Unless it shipped last week, hold it back.",
        "Suppose we moved yesterday.",
        "Should it break tomorrow, call Ben.",
        "They could have left last year.",
    ):
        yield stay("suppositions", "en", text)


def quotations() -> Iterator[DreamCase]:
    for text in (
        "Ann wrote: “we moved yesterday”.",
        '"We shipped last week" was the message.',
        "Run `git log --since=yesterday`.",
        "> we broke it last night",
        "```\n# moved yesterday\n```",
        "See https://example.com/released/yesterday for more.",
        "| Released yesterday | Ann |",
        "# What happened last week",
        "The commit says 'fixed yesterday'.",
        "Das Schild sagt „moved yesterday“.",
    ):
        yield stay("quotations", "en", text)


def statuses() -> Iterator[DreamCase]:
    for word in ("done", "not started", "in progress", "ok"):
        yield stay("statuses", "en", f"- Parser\n- {word}\n- Lexer\n- {word}")
        yield stay("statuses", "en", f"## Parser\nStatus: {word}\n\n## Lexer\nStatus: {word}")
        yield stay("statuses", "en", f"**Parser**\nStatus: {word}\n\n**Lexer**\nStatus: {word}")
    yield stay("statuses", "en", "# Log\n- Deployed to staging.\n- Deployed to staging.")
    yield stay("statuses", "de", "# Log\n- Auf Staging verteilt.\n- Auf Staging verteilt.")
    yield stay("statuses", "en", "1. Press the button.\n2. Wait a bit.\n3. Press the button.")
    yield stay("statuses", "en", "- A\n  - owner is Ann\n- B\n  - owner is Ann")


def paraphrases() -> Iterator[DreamCase]:
    pairs = (
        ("en", "Always run the linter before you push.", "Run the linter before pushing, always."),
        ("en", "The API moved to Go.", "The API moved to Go, but not the worker."),
        ("en", "- Use tabs.\n- Tags are signed.", "- Use tabs."),
        ("en", "Staging:\n- The port is 80.", "- The port is 80."),
        ("de", "Vor dem Push immer den Linter laufen lassen.", "Den Linter vor jedem Push laufen lassen."),
        ("es", "Ejecutar el linter antes de subir.", "Antes de subir, ejecutar el linter."),
        ("fr", "Lancer le linter avant de pousser.", "Avant de pousser, lancer le linter."),
        ("pt", "Rodar o linter antes do push.", "Antes do push, rodar o linter."),
        ("zh", "推送 之前 先 运行 检查。", "先 运行 检查 再 推送。"),
        ("ja", "プッシュ の 前 に リンタ を 実行。", "リンタ を 実行 して から プッシュ。"),
    )
    for language, one, other in pairs:
        yield stay("paraphrases", language, one, other)


def subjects() -> Iterator[DreamCase]:
    for (language, (one, _)), name in product(_ITEMS.items(), ("production", "billing")):
        yield stay("two subjects", language, one, one, name=name)


def abroad() -> Iterator[DreamCase]:
    for language, texts in {
        "de": ("Gestern sind wir umgezogen.", "Heute nutzen wir Postgres.", "Morgen beginnt der Freeze."),
        "es": ("Ayer movimos la API.", "Hoy usamos Postgres.", "Mañana empieza la pausa."),
        "fr": ("Hier nous avons migré.", "Aujourd'hui nous utilisons Postgres.", "Demain commence le gel."),
        "pt": ("Ontem migramos a API.", "Hoje usamos Postgres.", "Amanhã começa o freeze."),
        "zh": ("昨天 迁移 了 API。", "今天 我们 使用 Postgres。", "明天 开始 冻结。"),
        "ja": ("昨日 API を 移した。", "今日 は Postgres を 使う。", "明日 から フリーズ。"),
        "ru": ("Вчера мы переехали.", "Сегодня мы используем Postgres.", "Завтра начнётся заморозка."),
    }.items():
        yield from (stay("abroad", language, text) for text in texts)


def unknown_days() -> Iterator[DreamCase]:
    """What was taken in from another folder: nobody knows on which day it was written."""
    for text in (
        "We moved the API to Go yesterday.",
        "Ann left last week.",
        "The build broke 3 days ago.",
        "The freeze starts tomorrow.",
    ):
        case = stay("unknown days", "en", text)
        yield DreamCase(kind=case.kind, language="en", bodies=case.bodies, allowed={}, is_dated=False)


def sight() -> Iterator[DreamCase]:
    """Written before the rules were looked at again; four of sixty were harmed then."""
    for text in (
        "Today is the default value of the picker.",
        "Yesterday, today and tomorrow are the three tabs of the calendar.",
        "Last week was the first sprint with the new board, this week is the second.",
        "Nobody remembers why last year was chosen as the cut-off.",
        "Backups from last night are kept for a week; older ones are thinned out.",
        "Compare the bill with last month before you approve it.",
        "The dashboard's 'last week' tile is wrong on Mondays.",
        "What shipped yesterday is announced today at 10, every day.",
        "The test `test_yesterday_is_closed` is flaky.",
        "Someone said we deployed yesterday, but that was never confirmed.",
        "The bot posts: Deployed yesterday by Ann.",
        "Never promise that something will be done tomorrow.",
        "The song of yesterday plays in the office.",
        "Yesterday's backup overwrites the one before.",
        "The cron job for tomorrow is created at midnight.",
        "In the example, Ann ordered 3 days ago and Ben paid yesterday.",
        "The migration guide starts with: 'Last month we moved to v2.'",
        "Users who signed up last week see the banner.",
        "Logs of 7 days ago and older are compressed.",
        "The mock clock is set to yesterday.",
        "We talk about last week at every retrospective.",
        "Q: When did it break? A: yesterday, usually.",
        "A week ago means seven times 24 hours here.",
        "Nightly builds test what was merged the day before, so yesterday's merges show today.",
        "Two years ago is the limit for invoices.",
        "Do not trust the tickets closed last month.",
        "The phrase 'next week' in a ticket means the next sprint.",
        "Sessions from yesterday on are shown.",
        "The customer was told it would ship next week, which we never meant.",
    ):
        yield stay("sight: dates", "en", text)
    for text in (
        "- Build: green\n- Test: red\n- Build: green again",
        "1. git pull\n2. make\n3. git pull\n4. make",
        "- a:\n  - port 80\n- b:\n  - port 80",
        "# Monday\n- standup\n# Tuesday\n- standup",
        "- x\n\nAfter the outage:\n\n- x",
        "```\n- a\n- a\n```",
        "| a | b |\n|---|---|\n| 1 | 2 |\n| 1 | 2 |",
        "> - quoted\n> - quoted",
        "- [ ] write tests\n- [x] write tests",
        "- ring Ann\n- wait\n- ring Ann",
        "Step one: press OK.\nStep two: wait.\nStep one: press OK.",
        "- 10:00 deployed\n- 10:05 deployed\n- 10:00 deployed to eu",
        "- a: 1\n- A: 1",
        "- port 80\n- port 80/udp",
        "key=1\nkey=1",
        "- retry 3 times\n  - wait 1 s\n- reconnect\n  - wait 1 s",
    ):
        yield stay("sight: lists", "en", text)
    for one, other in (
        ("Deploy from main.", "Deploy from main\nand tag it."),
        ("Timeout is 30s.", "Timeout is 30 s for uploads."),
        ("Use UTC.", "Use utc in the database, local time in the UI."),
        ("Ask Ann about billing.", "Ask Ann about billing?"),
        ("Retry twice.", "Retry thrice."),
        ("The key is `foo_bar`.", "The key is `foo-bar`."),
        ("The key is FOO.", "The key is foo."),
        ("Path: a/b.", "Path: a/B."),
        ("Version 1.10 is required.", "Version 1.1 is required."),
        ("Do A, then B.", "Do B, then A."),
        ("Nicht ohne Test mergen.", "Ohne Test mergen."),
        ("在 main 上部署。", "不在 main 上部署。"),
    ):
        yield stay("sight: pairs", "en", one, other)
    for text, after in (
        ("Ann moved the parser to Rust yesterday.", "Ann moved the parser to Rust on 2026-11-09."),
        (
            "We switched from Jenkins to GitHub Actions last month.",
            "We switched from Jenkins to GitHub Actions in October 2026.",
        ),
        ("Ben left the team 5 days ago.", "Ben left the team on 2026-11-05."),
        ("The old cluster was shut down last year.", "The old cluster was shut down in 2025."),
        ("Two days ago we rotated the signing key.", "On 2026-11-08 we rotated the signing key."),
        ("The audit took place last week.", "The audit took place in the week of 2026-11-02."),
    ):
        yield become("sight: events", "en", text, after)


TUNED: tuple[Callable[[], Iterator[DreamCase]], ...] = (
    *(events, nowadays, habits, repeated_items, equal_lines_elsewhere, duplicates, differing),
)
FRESH = Path(__file__).parent / "dreams_fresh.json"
"""Folders written afterwards: kind, language, one body or two that stay, or one and a list of what it may
become. Of the first 200 the rules had harmed 17, then 9 of 117, 16 of 162, 14 of 77 and none of 71."""


def fresh() -> Iterator[DreamCase]:
    rows = cast("list[list[str | list[str]]]", json.loads(FRESH.read_text("utf-8")))
    for row in rows:
        kind, language, *bodies = [one for one in row if isinstance(one, str)]
        after = [text for one in row if isinstance(one, list) for text in one]
        name = f"fresh: {kind}"
        yield become(name, language, *bodies, *after) if after else stay(name, language, *bodies)


UNSEEN: tuple[Callable[[], Iterator[DreamCase]], ...] = (
    *(plans, instructions, definitions, suppositions, quotations, statuses, paraphrases, subjects),
    *(abroad, unknown_days, sight, fresh),
)


def make_cases() -> list[DreamCase]:
    return [case for kind in (*TUNED, *UNSEEN) for case in kind()]


@dataclass(frozen=True, slots=True)
class JudgedCase:
    case: DreamCase
    made: int
    """Right edits."""
    harm: tuple[str, ...]


def judge(case: DreamCase) -> JudgedCase:
    """Dream of it, and compare each memory with what it may become."""
    kept = [_kept(name, body, case.is_dated) for name, body in case.bodies.items()]
    draft = plan_merge(kept, {}, NOW, DreamSettings())
    made, harm = 0, list[str]()
    for name, body in case.bodies.items():
        text = draft.texts.get(f"{name}.md")
        after = GONE if text is None else read_memory(f"{name}.md", text).body.strip()
        if after in case.allowed.get(name, ()):
            made += 1
        elif after != body:
            harm.append(f"{body!r} became {after!r}")
    harm += [f"{key} is new" for key in draft.texts if key.removesuffix(".md") not in case.bodies]
    return JudgedCase(case, made, tuple(harm))


def _kept(name: str, body: str, is_dated: bool) -> DreamMemory:
    topic = name.removesuffix("-2")
    memory = read_memory(f"{name}.md", write_memory(name, f"what is known of {topic}", "project", body))
    written = DAY - timedelta(days=name.endswith("-2"))
    return DreamMemory(memory, written, Origin(who="user", why="a case"), () if is_dated else (None,))


def measure(judged: Sequence[JudgedCase]) -> dict[str, float]:
    wanted = sum(bool(one.case.allowed) for one in judged)
    made = sum(one.made for one in judged)
    harmful = sum(len(one.harm) for one in judged)
    return {
        "cases": len(judged),
        "wanted": wanted,
        "made": made,
        "harmful": harmful,
        "precision": made / (made + harmful) if made + harmful else 1.0,
        "recall": made / wanted if wanted else 1.0,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--show", action="store_true", help="print each harmful edit")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    judged = [judge(case) for case in make_cases()]
    tuned = {case.kind for kind in TUNED for case in kind()}
    groups: dict[str, list[JudgedCase]] = {}
    for one in judged:
        mark = "tuned" if one.case.kind in tuned else "unseen"
        for name in (f"{one.case.kind} ({mark})", f"language: {one.case.language}", f"all {mark}", "all"):
            groups.setdefault(name, []).append(one)
    figures = {name: measure(found) for name, found in groups.items()}
    if given.json:
        print(json.dumps(figures, indent=1, ensure_ascii=False))
    else:
        print(f"{'':32}  cases  wanted  made  harmful  precision  recall")
        for name, row in sorted(figures.items(), key=lambda item: (item[0].startswith("all"), item[0])):
            counts = f"{row['cases']:5}  {row['wanted']:6}  {row['made']:4}  {row['harmful']:7}"
            print(f"{name:32}  {counts}  {row['precision']:9.2f}  {row['recall']:6.2f}")
    for one in judged if given.show else ():
        for edit in one.harm:
            print(f"{one.case.kind}: {edit}")
    raise SystemExit(1 if figures["all"]["harmful"] else 0)


if __name__ == "__main__":
    main()
