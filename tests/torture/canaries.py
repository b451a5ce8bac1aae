"""Rig: made-up secrets in a team's folder: plain, disguised, in names, and cut in two by the end of a file.
None leaves the device whole, nothing that is told holds one, and what is harmless beside them does leave."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from bench.secret_samples import PROVIDERS, TRANSFORMS, Sample, in_note, make_samples

from sevenfold.core.events import Event
from sevenfold.core.memories import is_team_key
from sevenfold.store.files.folder import Folder
from sevenfold.team.client.exchange import SyncExchange
from sevenfold.team.client.screening import SecretScreen
from sevenfold.team.client.sync_policy import SyncState
from sevenfold.team.protocol import TeamKey
from tests.team.sim_device import Chronicle, SimFiles, SimLedger
from tests.team.sim_server import Network, SimServer
from tests.torture.rig import Orders, Outcome, outcome

AT_ONCE = 100
"""Secrets of one exchange."""
PLAIN = TeamKey("plain.md")
HARMLESS = "We deploy on Tuesdays, after the stand-up.\n"
DISGUISES = sorted({*TRANSFORMS} - {"concatenated", "spaced", "reversed"})
"""Of these three a few get through: what tells some secrets is taken apart as well."""
MOST_PASSED = 0.02
FRONTMATTER = "---\nname: deploy\ntype: project\ndescription: {}\n---\nWhat the staging account uses.\n"


class _InProcess(SecretScreen):
    """The same without a thread: the simulated network has no loop to come back to."""

    async def __call__(self, texts: Mapping[TeamKey, str]) -> Mapping[TeamKey, str]:
        return self.inspect(texts)


@dataclass(frozen=True, slots=True)
class Canary:
    """A secret, and the files that it lies in."""

    way: str
    value: str = field(repr=False)
    files: Mapping[TeamKey, str] = field(repr=False)


def run_canaries(orders: Orders) -> list[Outcome]:
    count = orders.pick(tiny=100, short=400, long=10_000)
    chance = orders.random("canaries")
    with (
        outcome("canaries", "secrets planted") as found,
        orders.scratch("canaries") as place,
        Folder.open(place) as folder,
    ):
        screen = _InProcess(folder)
        planted = list(_planted(count, chance))
        for first in range(0, len(planted), AT_ONCE):
            some = planted[first : first + AT_ONCE]
            found.count += len(some)
            for what in _judged(some, screen, chance):
                found.wrong(what)
            orders.progress("canaries", found.count, count, "secrets")
        ways = {one.way for one in planted}
        found.notes.append(f"in {len(ways)} ways: {', '.join(sorted(ways))}")
        return [found, _in_sentences(screen, orders.pick(tiny=3, short=10, long=100), chance)]


def _in_sentences(screen: SecretScreen, each: int, chance: random.Random) -> Outcome:
    """Secrets without a form of their own. Some passwords are words: of these a few may pass."""
    with outcome("canaries in sentences", "passwords and values told") as found:
        samples = make_samples(seed=chance.randrange(10**9), each=each)
        told = [one.value for one in samples if one.family not in PROVIDERS]
        found.count = len(told)
        passed = [text for text in told if not screen.inspect({PLAIN: f"# Staging\n\n{text}\n"})]
        found.notes.append(f"{len(passed):,} of {len(told):,} passed")
        if len(passed) > len(told) * MOST_PASSED:
            found.wrong(f"more than {MOST_PASSED:.0%} passed: {passed[:5]}")
    return found


def _judged(some: list[Canary], screen: SecretScreen, chance: random.Random) -> Iterator[str]:
    heard: list[Event] = []
    texts = {PLAIN: HARMLESS} | {key: text for one in some for key, text in one.files.items()}
    sent = _exchange(screen, texts, heard.append, chance)
    for one in some:
        if sent.keys() >= one.files.keys():
            yield f"this left, {one.way}: {dict(one.files)!r:.200}"
        if one.way != "in a name" and one.value in repr(heard):
            yield f"this was told, {one.way}: {one.value!r:.200}"
    if sent.get(PLAIN) != HARMLESS:
        yield "a harmless text was held back"


def _planted(count: int, chance: random.Random) -> Iterator[Canary]:
    """Each sample in the next of the ways that fit it."""
    samples = make_samples(seed=chance.randrange(10**9), each=count // 100 + 1)
    samples = [one for one in samples if one.family in PROVIDERS]
    chance.shuffle(samples)
    for at, sample in enumerate(samples[:count]):
        yield _hidden(sample, at, chance)


def _hidden(sample: Sample, at: int, chance: random.Random) -> Canary:
    value, key = sample.value, TeamKey(f"m{at:05}.md")
    if is_team_key(f"{value}.md") and chance.random() < 0.5:
        return Canary("in a name", value, {TeamKey(f"{value}.md"): HARMLESS})
    way = chance.choice(("plain", "plain", "in frontmatter", "over two files", *DISGUISES))
    if way == "in frontmatter":
        return Canary(way, value, {key: FRONTMATTER.format(value)})
    if way == "over two files":
        note, cut = in_note(value, chance), chance.randrange(3, len(value) - 3)
        middle = note.index(value) + cut
        names = (TeamKey(f"m{at:05}-a.md"), TeamKey(f"m{at:05}-b.md"))
        return Canary(way, value, dict(zip(names, (note[:middle], note[middle:]), strict=True)))
    hidden = TRANSFORMS[way](value, chance) if way in TRANSFORMS else value
    return Canary(way, value, {key: in_note(hidden, chance)})


def _exchange(
    screen: SecretScreen,
    texts: Mapping[TeamKey, str],
    emit: Callable[[Event], None],
    chance: random.Random,
) -> dict[TeamKey, str]:
    """What a server has after an exchange."""
    server = SimServer()
    network = Network(server=server, random=chance, delayed=[], is_quiet=True)
    files = SimFiles(chronicle=Chronicle(), texts=dict(texts))
    work = SyncExchange(network, files, SimLedger(SyncState(device="laptop")), screen=screen, emit=emit).run()
    while True:
        try:
            work.send(None)
        except StopIteration:
            return server.texts()
