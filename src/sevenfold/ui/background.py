"""Dreams with their diffs, and what background work spends: both with the switch that takes them back."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict

from sevenfold.core.clock import Clock
from sevenfold.core.errors import InputError
from sevenfold.layers.dreams.dreamer import Dreamer
from sevenfold.layers.dreams.policy import DreamSettings
from sevenfold.session.budget import SPEND_DAY, SpendSettings
from sevenfold.session.governor import Governor, SpendStore, describe_spend
from sevenfold.session.opening import Workspace
from sevenfold.store.files.locks import LockSettings
from sevenfold.store.memory.changes import describe_transaction
from sevenfold.ui.calls import PageCall, PageRoute, route_get, route_post
from sevenfold.ui.memories import clip_diff

SPEND_DAYS = 14


class DreamPages:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def routes(self) -> Sequence[PageRoute]:
        return (
            route_get("dreams", self.list),
            route_get("dream", self.show),
            route_post("dream/undo", self.undo),
            route_post("dream/stop", self.stop),
        )

    def list(self, _: PageCall) -> object:
        with closing(self._open()) as dreamer:
            running = dreamer.find_running()
            records = dreamer.records.list(running=running)
        undone = self._find_undone()
        return {
            "running": running,
            "dreams": [{**asdict(one), "is_undone": one.transaction in undone} for one in records],
        }

    def show(self, call: PageCall) -> object:
        with closing(self._open()) as dreamer:
            record = dreamer.records.read(call.text("id"))
            diff = dreamer.records.diff(record.id)
        return {**asdict(record), **clip_diff(diff), "is_undone": record.transaction in self._find_undone()}

    def undo(self, call: PageCall) -> object:
        with closing(self._open()) as dreamer:
            record = dreamer.records.read(call.text("id"))
        if not record.transaction:
            raise InputError(f"dream {record.id} changed nothing, so there is nothing to take back")
        done = self._workspace.memory.revert(record.transaction, f"dream {record.id} was undone")
        return describe_transaction(done)

    def stop(self, _: PageCall) -> object:
        with closing(self._open()) as dreamer:
            running = dreamer.find_running()
            if not running:
                raise InputError("no dream is under way")
            dreamer.records.ask_to_stop(running)
        return {"id": running}

    def _find_undone(self) -> set[str]:
        return {one.of for one in self._workspace.memory.log(limit=None) if one.kind == "revert" and one.of}

    def _open(self) -> Dreamer:
        workspace = self._workspace
        settings = workspace.settings
        return Dreamer(
            workspace.project,
            workspace.memory,
            settings.of(DreamSettings),
            locks=settings.of(LockSettings),
            templates=workspace.templates,
        )


class SpendPages:
    """What background work of all processes spent, against its caps."""

    def __init__(self, workspace: Workspace, clock: Clock) -> None:
        self._workspace, self._clock = workspace, clock

    def routes(self) -> Sequence[PageRoute]:
        return (
            route_get("spend", self.show),
            route_post("spend/stop", self.stop),
            route_post("spend/resume", self.resume),
            route_post("spend/forgive", self.forgive),
        )

    def show(self, _: PageCall) -> object:
        now, rules = self._clock.now(), self._workspace.settings.of(SpendSettings)
        with closing(SpendStore.open(self._workspace.home)) as store:
            state = Governor(store, rules).state()
            charges = list(store.charges((now - SPEND_DAYS * SPEND_DAY).date(), now.date()))
        billed = [charge for charge in charges if not charge.is_unbilled]
        recent = [charge for charge in billed if charge.at > now - SPEND_DAY]
        days: dict[str, int] = {}
        for charge in billed:
            day = charge.at.date().isoformat()
            days[day] = days.get(day, 0) + (charge.micro_usd or 0)
        return {
            **describe_spend(state, recent, rules, now),
            "is_allowed": rules.background,
            "unbilled_calls": len(state.held)
            + sum(charge.is_unbilled and charge.at > now - SPEND_DAY for charge in charges),
            "days": days,
        }

    def stop(self, call: PageCall) -> object:
        """The kill switch: no model is asked for anything but conversations."""
        with closing(SpendStore.open(self._workspace.home)) as store:
            self._govern(store).stop(f"on the page on {self._clock.now():%Y-%m-%d %H:%M} (UTC)")
        return self.show(call)

    def resume(self, call: PageCall) -> object:
        with closing(SpendStore.open(self._workspace.home)) as store:
            self._govern(store).resume()
        return self.show(call)

    def forgive(self, call: PageCall) -> object:
        kind = call.text("kind")
        with closing(SpendStore.open(self._workspace.home)) as store:
            governor = self._govern(store)
            if kind not in governor.state().strikes:
                raise InputError(f"{kind[:40]!r} has no failures to forgive")
            governor.forgive(kind)
        return self.show(call)

    def _govern(self, store: SpendStore) -> Governor:
        return Governor(store, self._workspace.settings.of(SpendSettings))
