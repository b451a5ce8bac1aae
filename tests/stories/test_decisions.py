"""From a chat to the bug report: what was decided is found months later, and the newest decision first."""

from __future__ import annotations

from pathlib import Path

from sevenfold.core.clock import SystemClock
from sevenfold.core.events import ignore_event
from sevenfold.layers.memory.recall.finder import MemoryFinder, MemoryLibrary
from sevenfold.session.settings import SETTINGS_SECTIONS
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.project.project import open_project
from sevenfold.store.project.settings_files import read_settings
from tests.layers.learning import School

REPORT = "Shipping labels of parcels to islands come out with the wrong price. Fix label_price, please."


def teach(school: School) -> None:
    """A decision, talk about other things, and the decision's amendment."""
    first = school.session("march")
    first.say(
        "Parcels to islands get the mainland price on their shipping labels, and couriers refuse them.",
        "label_price looks at the country alone. Shall I add a flat fee for island zip codes?",
    ).end()
    first.say(
        "No — a flat fee is wrong. Parcels to islands must be priced by weight, and never below 9 euros.",
        "Settled: label_price prices island parcels by weight, with 9 euros as the least.",
    ).end()
    idle = school.session("april")
    idle.say("How does the retry loop in the courier client work?", "It doubles the wait each time.").end()
    idle.say("Makes sense. I guess that is why it feels slow.", "Yes.").end()
    school.session("may").say("Always run make labels before a release.").end()
    later = school.session("june")
    later.say(
        "Update to the island price rule: the courier has a new contract, the least is 12 euros now.",
        "Amended rule, superseding the old least: island parcels by weight, 12 euros at least.",
    ).end()


def test_the_amended_decision_is_found_first_and_the_old_one_is_in_its_history(tmp_path: Path) -> None:
    school = School(tmp_path)
    teach(school)
    school.close()
    start = tmp_path / "project"
    settings = read_settings(SETTINGS_SECTIONS, root=start, environ={"HOME": str(tmp_path)})
    with open_project(start, settings, user_home=tmp_path) as project, MemoryDir(project) as memory:
        finder = MemoryFinder(MemoryLibrary(project, memory, tmp_path, start), SystemClock(), ignore_event)
        found = finder.find(REPORT, 5)
        finder.close()
        stored = memory.read(found[0].key)
        history = [
            memory.body(change.after or "") for item in memory.log(found[0].key) for change in item.changes
        ]
        assert len(memory.keys()) == 2
    assert stored.origin.session == "june"
    assert "12 euros" in stored.memory.body
    assert "9 euros" in history[-1]
    assert "12 euros" not in history[-1]
