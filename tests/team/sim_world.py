"""Seeded schedules of several devices and a server; and the judge of how they end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Literal, TypeAlias

from sevenfold.team.protocol import TeamKey
from tests.team.sim_device import Chronicle, Device, tokens
from tests.team.sim_server import Network, SimServer

QUIET_ROUNDS = 2


Act: TypeAlias = (
    Literal["go on", "begin", "edit", "delete", "lose", "crash", "part", "arrive", "set clock"]
    | Literal["back up", "restore", "roll back"]
)

USUAL: dict[Act, float] = {
    "go on": 55,
    "begin": 20,
    "edit": 11,
    "delete": 3,
    "lose": 1,
    "crash": 3,
    "part": 3,
    "arrive": 4,
    "set clock": 5,
}
"""How often each happens. A schedule has moods of its own: without some of it, or with much more."""

SET_BACK: dict[Act, float] = {**USUAL, "back up": 5, "restore": 3, "roll back": 4}
"""The same on a server that is restored from backups, and recovered to a point in time."""


class World:
    """One schedule from its seed: what people, networks and power cuts do, and in which order."""

    def __init__(
        self,
        seed: int,
        *,
        server: type[SimServer] = SimServer,
        device: type[Device] = Device,
        is_set_back: bool = False,
    ) -> None:
        self.is_set_back = is_set_back
        self.random = Random(seed)
        self.chronicle = Chronicle()
        self.server = server()
        self.delayed: list[Callable[[], object]] = []
        keys = self.random.randint(1, 3)
        self.devices = [self._device(f"device{at}", device) for at in range(self.random.randint(2, 5))]
        for each in self.devices:
            each.keys = keys
        self.lines = 0

    def _device(self, name: str, kind: type[Device]) -> Device:
        return kind(
            name,
            Network(server=self.server, random=self.random, delayed=self.delayed),
            self.chronicle,
            self.random,
        )

    def run(self) -> None:
        usual = SET_BACK if self.is_set_back else USUAL
        moods = [weight * self.random.choice((0.2, 1, 1, 5)) for weight in usual.values()]
        acts = self.random.choices(list(usual), moods, k=self.random.randint(40, 160))
        for act in acts:
            self._do(act, self.random.choice(self.devices))

    def _do(self, act: Act, device: Device) -> None:
        acts: dict[Act, Callable[[], None]] = {
            "go on": lambda: device.go_on(self.random.randint(1, 12)),
            "begin": device.begin,
            "edit": lambda: self._edit(device),
            "delete": device.delete,
            "lose": device.lose,
            "crash": device.crash,
            "part": device.network.part,
            "arrive": self._arrive,
            "set clock": device.set_clock,
            "back up": self.server.back_up,
            "restore": self.server.restore,
            "roll back": self.server.roll_back,
        }
        acts[act]()

    def _edit(self, device: Device) -> None:
        self.lines += 1
        device.edit(f"line {self.lines}")

    def _arrive(self) -> None:
        if self.delayed:
            self.delayed.pop(self.random.randrange(len(self.delayed)))()

    def settle(self) -> None:
        """Peace: what was late arrives, everybody may talk, and each device exchanges twice."""
        for device in self.devices:
            if self.random.random() < 0.5:
                device.crash()
            device.network.is_quiet = True
            device.finish()
        for call in self.delayed:
            call()
        self.delayed.clear()
        for _ in range(QUIET_ROUNDS):
            for device in self.devices:
                device.start()
                device.finish()

    def judge(self) -> Iterator[str]:
        texts = self.server.texts()
        for device in self.devices:
            if device.files.texts != texts:
                yield f"{device.name} has {device.files.texts}, and the server {texts}"
            if device.report is None or not device.report.is_settled or device.ledger.state.pending:
                yield f"{device.name} has not settled"
        there = {line for text in texts.values() for line in tokens(text)}
        for line in self.chronicle.written:
            if line not in there and line not in self.chronicle.removed:
                yield f"{line!r} is lost, and nobody took it out"
        if not self.is_set_back:  # a server that was set back has lost deletions too
            yield from self._resurrections(texts)
        for copy in self.chronicle.copies - self.chronicle.resolved:
            if copy not in texts:
                yield f"the conflict {copy} is nowhere to be seen"
        yield from self._unrest()

    def _resurrections(self, texts: dict[TeamKey, str]) -> Iterator[str]:
        for wish in self.chronicle.deleted:
            back = wish.lines.intersection(tokens(texts.get(wish.key, "")))
            # Whoever was changing it at the time keeps it alive.
            if back and not any(
                left & wish.lines and added not in wish.seen for added, left in self.chronicle.written.items()
            ):
                yield f"{sorted(back)} of {wish.key} was deleted, nobody was changing it, and it is back"

    def _unrest(self) -> Iterator[str]:
        """Another round has nothing to do."""
        seq = self.server.seq
        for device in self.devices:
            device.start()
            device.finish()
            if device.report is None or device.report.has_news:
                yield f"{device.name} still exchanges something after {QUIET_ROUNDS} quiet rounds"
        if self.server.seq != seq:
            yield "the server still changes"


def play(
    seed: int,
    *,
    server: type[SimServer] = SimServer,
    device: type[Device] = Device,
    is_set_back: bool = False,
) -> tuple[str, ...]:
    """What is wrong at the end of a schedule."""
    world = World(seed, server=server, device=device, is_set_back=is_set_back)
    world.run()
    world.settle()
    return tuple(world.judge())
