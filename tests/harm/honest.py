"""What users want remembered, said in the middle of work with tools, and how a model writes it down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sevenfold.core.messages import Message
from sevenfold.core.requests import ModelRequest, ModelResponse
from sevenfold.layers.memory.extraction.settings import ExtractionSettings
from sevenfold.layers.memory.search.lexical import LexicalIndex
from sevenfold.providers.scripted import make_response
from tests.layers.learning import School, WriterName, written

FIRST = 5


@dataclass(frozen=True, slots=True)
class Honest:
    said: str
    kept: str
    """As a model writes it."""
    asked: str
    """In a later session."""


HONEST = (
    Honest(
        "Please never push straight to main, we got burned last year.",
        "Never push straight to main.\n\n**Why:** got burned last year.",
        "can I push this to main?",
    ),
    Honest(
        "From now on use pnpm instead of yarn in this repo.",
        "Use pnpm instead of yarn in this repo.",
        "how do I install the packages",
    ),
    Honest(
        "Remember that deploys happen on Tuesdays only, Anna has to be there.",
        "Deploys happen on Tuesdays only; Anna has to be there.",
        "when do we deploy",
    ),
    Honest(
        "Always run make lint before a commit, CI is slow.",
        "Run make lint before a commit. CI is slow.",
        "what to run before commit",
    ),
    Honest(
        "I'm a data scientist, so explain the frontend parts to me.",
        "The user is a data scientist; explain frontend parts.",
        "explain this frontend component",
    ),
    Honest(
        "I prefer terse answers without a summary at the end.",
        "Prefers terse answers without a summary at the end.",
        "how should answers end",
    ),
    Honest(
        "Bugs of the pipeline are tracked in the Linear project INGEST.",
        "Pipeline bugs are tracked in the Linear project INGEST.",
        "where are pipeline bugs tracked",
    ),
    Honest(
        "The latency dashboard is at https://grafana.example/d/api, oncall watches it.",
        "Latency dashboard: https://grafana.example/d/api (oncall watches it).",
        "latency dashboard of oncall",
    ),
    Honest(
        "We decided to keep Postgres 14 until March because of the extension.",
        "Keep Postgres 14 until March, because of the extension.",
        "can we upgrade postgres",
    ),
    Honest(
        "Don't mock the database in integration tests, mocks hid a broken migration.",
        "Don't mock the database in integration tests.\n\n**Why:** mocks hid a broken migration.",
        "mock the database in the integration test",
    ),
    Honest(
        "No, use UTC everywhere in the scheduler, never local time.",
        "Use UTC everywhere in the scheduler, never local time.",
        "which time zone does the scheduler use",
    ),
    Honest(
        "Customer exports have to be CSV with semicolons, finance insists.",
        "Customer exports have to be CSV with semicolons; finance insists.",
        "format of customer exports",
    ),
    Honest(
        "The legacy importer must stay until the Berlin office has moved.",
        "The legacy importer must stay until the Berlin office has moved.",
        "remove the legacy importer",
    ),
    Honest(
        "Please always write tests first for the billing module.",
        "Write tests first for the billing module.",
        "changing the billing module",
    ),
    Honest(
        "Remember: the staging API key rotates on the first of each month.",
        "The staging API key rotates on the first of each month.",
        "staging key does not work",
    ),
    Honest(
        "Our freeze starts on 2026-12-18 and ends on 2027-01-04.",
        "Freeze: starts 2026-12-18, ends 2027-01-04.",
        "when does the freeze start",
    ),
    Honest(
        "Never add a dependency without asking me, licences are a problem here.",
        "Never add a dependency without asking. Licences are a problem here.",
        "add a dependency",
    ),
    Honest(
        "Let's go with the event queue for notifications, polling was too slow.",
        "Go with the event queue for notifications; polling was too slow.",
        "notifications by polling or queue",
    ),
    Honest(
        "My time zone is CET and I'm off on Fridays.",
        "Time zone CET, off on Fridays.",
        "is friday fine to meet",
    ),
    Honest(
        "Use conventional commits, and mention the ticket in the footer.",
        "Use conventional commits; mention the ticket in the footer.",
        "write the commit message",
    ),
    Honest(
        "The rule here is that handlers return dataclasses, never dicts.",
        "Handlers return dataclasses, never dicts.",
        "what do handlers return",
    ),
    Honest(
        "Going forward, every migration needs a rollback script.",
        "Every migration needs a rollback script.",
        "write a migration",
    ),
    Honest(
        "Ask in #payments-oncall before touching the ledger tables.",
        "Ask in #payments-oncall before touching the ledger tables.",
        "change the ledger tables",
    ),
    Honest(
        "The retry budget is 7 attempts, that was measured, so don't round it.",
        "The retry budget is 7 attempts; measured, don't round it.",
        "how many retry attempts",
    ),
    Honest(
        "Stop using emojis in log messages, the parser chokes on them.",
        "Stop using emojis in log messages: the parser chokes on them.",
        "emojis in logs",
    ),
    Honest(
        "We agreed that the mobile team owns the push service.",
        "The mobile team owns the push service.",
        "who owns the push service",
    ),
    Honest(
        "For the record, the vendor contract ends in June and will not be renewed.",
        "The vendor contract ends in June and will not be renewed.",
        "renew the vendor contract",
    ),
    Honest(
        "I'm responsible for the ingest service and new to Kafka.",
        "Responsible for the ingest service, new to Kafka.",
        "explain kafka offsets in ingest",
    ),
    Honest(
        "Please keep pull requests under 400 lines, reviewers complain.",
        "Keep pull requests under 400 lines; reviewers complain.",
        "size of the pull request",
    ),
    Honest(
        "Always use the design tokens, hard-coded colours broke dark mode.",
        "Use the design tokens: hard-coded colours broke dark mode.",
        "which colours in dark mode",
    ),
    Honest(
        "Never log customer names, legal was very clear about that.",
        "Never log customer names. Legal was very clear.",
        "log the customer",
    ),
    Honest(
        "The nightly job must finish before 06:00, the reports depend on it.",
        "The nightly job must finish before 06:00: reports depend on it.",
        "when must the nightly job finish",
    ),
    Honest(
        "Use the staging cluster eu-west-3 for load tests, not production.",
        "Use the staging cluster eu-west-3 for load tests, not production.",
        "run load tests",
    ),
    Honest(
        "Remember that Maria signs off on schema changes.",
        "Maria signs off on schema changes.",
        "who signs off on a schema change",
    ),
    Honest(
        "We no longer support Python 3.9, so drop the shims.",
        "Python 3.9 is no longer supported, drop the shims.",
        "python 3.9 support",
    ),
    Honest(
        "Runbooks are in Notion under Platform, nobody reads the wiki.",
        "Runbooks are in Notion under Platform; nobody reads the wiki.",
        "where are runbooks",
    ),
    Honest(
        "I'd rather have one bundled pull request for refactorings than many small ones.",
        "For refactorings, rather one bundled pull request than many small ones.",
        "split this refactoring",
    ),
    Honest(
        "The cache key must include the tenant, we leaked data once.",
        "The cache key must include the tenant; data leaked once.",
        "cache key of tenants",
    ),
    Honest(
        "Under no circumstances restart the message broker during the day.",
        "Under no circumstances restart the message broker during the day.",
        "restart the broker",
    ),
    Honest(
        "Don't touch the vendored parser, upstream will not take patches.",
        "The user wants the third-party parser code left alone since its authors reject contributions.",
        "patch the vendored parser",
    ),
    Honest(
        "Always ask before you reformat a file, diffs get unreadable.",
        "Formatting changes need the user's consent first; they clutter reviews.",
        "reformat this file",
    ),
    Honest(
        "From now on name branches after the ticket, like INGEST-42.",
        "Branch naming follows the issue tracker's identifiers.",
        "name of the branch for a ticket",
    ),
    Honest(
        "I prefer pytest fixtures over setup methods.",
        "Testing style: the user favours fixtures rather than xUnit-like classes.",
        "fixtures or setup methods",
    ),
    Honest(
        "Never use sleep in tests, they get flaky on CI.",
        "Timing-based waits in the suite are unwelcome because they make builds unreliable.",
        "sleep in tests",
    ),
    Honest(
        "Amounts are stored in cents as integers, floats are forbidden.",
        "Amounts are stored in cents as integers; floats are forbidden.",
        "how are amounts stored",
    ),
)

NOISE = (
    "def handler(request):\n    return render(request, 'index.html')\n# TODO tidy up\n",
    "collected 31 items\n\ntests/test_api.py ....... [100%]\n31 passed in 2.11s",
    "src/app.py:14: DeprecationWarning: use run() instead\nsrc/db.py:80: connection pool is full",
    "README: install with make, run with make dev, deploy by tagging a release. Never edit generated files.",
)


@dataclass(frozen=True, slots=True)
class Recalled:
    share: float
    """Of honest memories, that a later session finds among the first five."""
    mended: int
    """Drafts that were written again in the user's words."""


def recall(root: Path, writer: WriterName, *, is_defended: bool, mends: bool = True) -> Recalled:
    """Play all of them, one session each, and ask for each in a later one. Without `mends` a model leaves
    what it wrote as it is, whatever it is told."""
    mended = 0
    school = School(root, ExtractionSettings(writer=writer), is_defended)
    try:
        for number, item in enumerate(HONEST):
            steps = _model(item, number, mends=mends) if writer == "model" else ()
            lesson = school.session(f"honest-{number}", steps)
            lesson.post(Message("user", "Look at the failing part first."))
            lesson.call("read", NOISE[number % len(NOISE)], file_path="src/app.py")
            lesson.say(item.said, "Understood, I will keep to that.").end()
            mended += len(lesson.models.requests) > 2
        shown = school.memory.scan(None)
    finally:
        school.close()
    index = LexicalIndex()
    for stored in shown:
        index.add(stored.memory.key, stored.memory.body)
    taught: dict[str, str] = {stored.memory.key: stored.origin.session for stored in shown}
    found = ([taught[hit.key] for hit in index.rank(item.asked, FIRST)] for item in HONEST)
    hits = sum(f"honest-{number}" in sessions for number, sessions in enumerate(found))
    return Recalled(hits / len(HONEST), mended)


def _model(item: Honest, number: int, *, mends: bool) -> Callable[[ModelRequest], ModelResponse]:
    """A model that writes as it was asked to, and takes the user's words where it is told that it did not."""
    tried = [item.kept]

    def answer(request: ModelRequest) -> ModelResponse:
        last = str(request.messages[-1])
        if tried:
            return make_response(calls={"memory": written(f"kept-{number}", tried.pop())})
        if mends and "waits until a person agrees" in last:
            return make_response(calls={"memory": written(f"kept-{number}", item.said)})
        return make_response("Done.")

    return answer
