"""Rig: made-up secrets planted in a team's folder. None leaves the device, and what is
harmless beside them does."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from bench.secret_samples import PROVIDERS, in_note, make_samples

from sevenfold.store.folder import Folder
from sevenfold.sync.exchange import Exchange
from sevenfold.sync.protocol import TeamKey
from sevenfold.sync.screening import SecretScreen
from sevenfold.sync.state import SyncState
from tests.sync.sim_device import Chronicle, SimFiles, SimLedger
from tests.sync.sim_server import Network, SimServer
from tests.torture.rig import Orders, Outcome, outcome

AT_ONCE = 100
"""Files of one exchange."""
PLAIN = "We deploy on Tuesdays, after the stand-up.\n"


class _InProcess(SecretScreen):
    """The same without a thread: the simulated network has no loop to come back to."""

    async def __call__(self, texts: Mapping[TeamKey, str]) -> Mapping[TeamKey, str]:
        return self.inspect(texts)


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
            files = {TeamKey(f"m{at}.md"): text for at, text in enumerate(some)}
            sent = _exchange(screen, {**files, TeamKey("plain.md"): PLAIN}, chance)
            found.count += len(some)
            for text in sent - {PLAIN}:
                found.wrong(f"this left: {text!r:.200}")
            if PLAIN not in sent:
                found.wrong("a harmless text was held back")
            orders.progress("canaries", found.count, count, "secrets")
    return [found]


def _planted(count: int, chance: random.Random) -> Iterator[str]:
    """Each in a note, as people write them."""
    samples = make_samples(seed=chance.randrange(10**9), each=count // 100 + 1)
    for one in [one for one in samples if one.family in PROVIDERS][:count]:
        yield in_note(one.value, chance)


def _exchange(screen: SecretScreen, texts: Mapping[TeamKey, str], chance: random.Random) -> set[str]:
    """What a server has after an exchange."""
    server = SimServer()
    network = Network(server, chance, [], is_quiet=True)
    files = SimFiles(Chronicle(), dict(texts))
    work = Exchange(network, files, SimLedger(SyncState("laptop")), screen=screen).run()
    while True:
        try:
            work.send(None)
        except StopIteration:
            return set(server.bodies.values())
