"""A pytest plugin for `bench/mutation.py`: notes which tests run a probe, or keeps the tests that are wanted.

The environment variable `MUTATION_PLAN` names a JSON file. With `out` in it, a map is written there: which
tests run each probed line, which fail and how long each takes. With `tests` in it, all other tests are
deselected. A probe is a line that `add_probes` has put into the source.
"""

from __future__ import annotations

import builtins
import json
import os
import sys
from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict, cast

import pytest

PLAN = "MUTATION_PLAN"


class Plan(TypedDict, total=False):
    out: str
    tests: list[str]


class LineMap(TypedDict):
    runs: dict[str, list[str]]
    """Tests by `file:line`; an empty one stands for what runs outside of tests."""
    failed: list[str]
    seconds: dict[str, float]
    """By test; under an empty name, what it takes to start."""


# Compared by identity, because pytest keeps its plugins in a set.
@dataclass(slots=True, eq=False)
class Mapper:
    out: Path
    test: str = ""
    runs: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict[str, set[str]](set))
    failed: set[str] = field(default_factory=set[str])
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict[str, float](float))

    def probe(self, line: int) -> None:
        file = sys._getframe(1).f_code.co_filename  # pyright: ignore[reportPrivateUsage]
        self.runs[f"{file}:{line}"].add(self.test)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.test = item.nodeid
        try:
            return (yield)
        finally:
            self.test = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        found = LineMap(
            runs={line: sorted(tests) for line, tests in self.runs.items()},
            failed=sorted(self.failed),
            seconds=dict(self.seconds),
        )
        self.out.write_text(json.dumps(found), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Chooser:
    tests: frozenset[str]

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        others = [item for item in items if item.nodeid not in self.tests]
        items[:] = [item for item in items if item.nodeid in self.tests]
        config.hook.pytest_deselected(items=others)


def pytest_configure(config: pytest.Config) -> None:
    plan = cast("Plan", json.loads(Path(os.environ[PLAN]).read_text(encoding="utf-8")))
    if "out" in plan:
        mapper = Mapper(Path(plan["out"]))
        config.pluginmanager.register(mapper)
        builtins.__dict__["mutation_probe"] = mapper.probe
    elif "tests" in plan:
        config.pluginmanager.register(Chooser(frozenset(plan["tests"])))
