"""Directories of 300 short memories as a developer's project gathers them, with prompts that are about one.

Made by templates: how the person likes to work, facts of the project, rules of release, people, machines and
incidents. Two projects without a word of their own in common: one of web services, one of devices. For each
memory of some kinds there is a question and an instruction that should bring it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

SIZE = 300


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt, and the memory that it is about."""

    text: str
    gold: str


@dataclass(frozen=True, slots=True)
class ProjectMemories:
    name: str
    texts: Mapping[str, str]
    asked: Sequence[Asked]


WEB = {
    "part": "billing checkout catalog search invoices accounts notifications shipping refunds coupons "
    "warehouse analytics reviews gateway identity webhooks",
    "person": "Marta Kenji Oluwaseun Priya Tobias Ingrid Rafael Yuki Fatima Declan Sanne Mateus",
    "host": "edge-1 edge-2 kestrel osprey harrier buzzard merlin",
    "tool": "pnpm vitest ruff mypy terraform helm playwright docker prettier alembic",
}
DEVICES = {
    "part": "gripper odometry battery telemetry bootloader lidar motor-control charging-dock imu "
    "camera-driver path-planner safety-stop firmware-update joystick logger thermal",
    "person": "Annika Bogdan Chiara Dmitri Esteban Freya Gustavo Helmi Ishaan Jolanda Kwame Linnea",
    "host": "bench-rig hil-3 hil-4 flasher paintbox rover-7 rover-9",
    "tool": "cmake colcon clang-tidy openocd conan gtest clang-format jlink yocto doxygen",
}
DETAIL = (
    ("written in", "Go", "Rust", "TypeScript", "Python", "Kotlin", "Elixir", "Scala", "Zig"),
    ("stores its data in", "PostgreSQL 15", "Redis", "SQLite", "DynamoDB", "ClickHouse", "MongoDB", "etcd"),
)
PART_FACTS: tuple[tuple[str, str, str, str], ...] = (
    (
        "{part} owner",
        "{person} owns {part} and has to approve every change to its public interface.",
        "who do I ask before I change {part}?",
        "prepare a change to the public interface of {part}",
    ),
    (
        "{part} release",
        "{part} is released on {day} only, never after 15:00, because {person} watches the dashboards then.",
        "when can {part} be released?",
        "ship the new version of {part}",
    ),
    (
        "{part} tests",
        "The tests of {part} need the {host} machine and take {number} minutes; run them with {tool}.",
        "how are the tests of {part} run?",
        "the {part} change is ready, test it",
    ),
    (
        "{part} timeout",
        "{part} gives up on a connection after {number} seconds; a longer limit blocked the queue in March.",
        "what is the connection limit of {part}?",
        "{part} drops connections, raise the limit",
    ),
    (
        "{part} schema",
        "Columns of {part} are never dropped: mark them obsolete, the nightly export of {person} still "
        "reads them.",
        "may I drop a column in {part}?",
        "clean up the old columns of {part}",
    ),
    (
        "{part} logs",
        "Logs of {part} go to {host} under /var/log/{part} and are kept for {number} days.",
        "where are the logs of {part}?",
        "look at yesterday's {part} logs for me",
    ),
    (
        "{part} incident",
        "On {day} {part} lost events because a retry ran twice; since then every message carries a "
        "dedup key.",
        "what happened to {part} events back then?",
        "write a consumer that retries {part} messages",
    ),
    (
        "{part} format",
        "{part} sends dates as epoch milliseconds, not ISO strings, since old clients cannot parse "
        "anything else.",
        "which date format does {part} send?",
        "add a created date to what {part} sends",
    ),
    (
        "{part} flag",
        "New behaviour of {part} stays behind a feature flag for {number} days before it is switched on "
        "for all.",
        "how long do {part} features stay behind a flag?",
        "switch the new {part} behaviour on for everyone",
    ),
    (
        "{part} secrets",
        "Credentials of {part} are in the vault under team/{part}, not in environment files.",
        "where do I find the credentials of {part}?",
        "the {part} password has to be rotated",
    ),
)
PERSON_FACTS = (
    (
        "{person} hours",
        "{person} works from {number} to 16 o'clock and does not answer messages on {day}.",
        "when can I reach {person}?",
        "leave {person} a message that we need an answer today",
    ),
    (
        "{person} reviews",
        "{person} wants small pull requests: under {number}0 lines, one topic, with a screenshot.",
        "how does {person} like pull requests?",
        "get this ready for {person} to review",
    ),
    (
        "{person} role",
        "{person} decides about budgets and vendor contracts since {day}'s reorganisation.",
        "what does {person} decide?",
        "draft the vendor contract question for {person}",
    ),
)
HOST_FACTS = (
    (
        "{host} access",
        "{host} is reached through the jump server only; direct SSH is blocked by the firewall.",
        "how do I log in to {host}?",
        "copy the dump from {host} to my laptop",
    ),
    (
        "{host} maintenance",
        "{host} restarts every {day} at {number}:00 for updates, long jobs must be finished by then.",
        "when does {host} restart?",
        "start the long import on {host}",
    ),
    (
        "{host} disk",
        "The disk of {host} is small: delete artifacts older than {number} days before a build.",
        "why does {host} run out of space?",
        "build the artifacts on {host}",
    ),
)
TOOL_FACTS = (
    (
        "{tool} version",
        "Stay on {tool} {number}.2: the next major version breaks the cache in CI.",
        "which version of {tool} do we use?",
        "upgrade {tool}",
    ),
    (
        "{tool} options",
        "Call {tool} with the options from the Makefile, never by hand; {person} keeps them in step with CI.",
        "how should {tool} be called?",
        "run {tool} over everything",
    ),
)
PREFERENCES = (
    "Answer in German when the question is in German, but keep code comments in English.",
    "Prefers small commits with an imperative subject line and no body unless it is a fix.",
    "Never add emojis to code, commit messages or documentation.",
    "Wants to see a plan before any refactoring that touches more than three files.",
    "Prefers composition over inheritance and dislikes deep class hierarchies.",
    "Do not add new dependencies without asking first.",
    "Tests come with the change, in the same commit.",
    "Prefers explicit imports over wildcard imports.",
    "Uses tabs in Makefiles and four spaces elsewhere.",
    "Likes short answers without a summary at the end.",
    "Error messages should say what to try next.",
    "Do not rewrite files as a whole when a small edit is enough.",
    "Always show the diff before committing.",
    "Runs the linter on save, so formatting changes are noise in a diff.",
    "Prefers tables to long lists when options are compared.",
    "Comments should say why, not what.",
    "Branches are named after the ticket number.",
    "Works on a small laptop screen: keep lines under 100 characters.",
    "Wants pull requests as drafts until the tests are green.",
    "Dislikes mocks; prefers fakes that are shared by the tests.",
    "Uses dark mode everywhere and wants screenshots in dark mode.",
    "Prefers British spelling in documentation.",
    "Never push to a shared branch without a confirmation.",
    "Functions longer than forty lines should be split.",
    "Log lines are structured, with a key for every value.",
    "Prefers a function with keyword arguments over a builder.",
    "Times in tests are fixed, never the real clock.",
    "Configuration belongs in TOML, not in YAML.",
    "Wants numbers with units in every report.",
    "Public functions get a docstring with one example.",
    "Writes changelog entries for users, not for developers.",
)
PREFERENCE_ASKED = {
    0: "which language should comments be in when I write in German?",
    1: "how should commit subjects look?",
    4: "should I use a base class and inherit from it here, or composition?",
    5: "can I add a dependency for parsing YAML?",
    8: "tabs or spaces in the Makefile?",
    14: "compare these three options in a list or a table?",
    16: "what do I name the branch for this ticket?",
    17: "how long may lines be?",
    19: "should I use a mock for the mail server?",
    21: "British or American spelling in the documentation?",
}
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
GROUPS = (("part", PART_FACTS), ("person", PERSON_FACTS), ("host", HOST_FACTS), ("tool", TOOL_FACTS))


def list_projects() -> tuple[ProjectMemories, ...]:
    return tuple(make_project(name, words) for name, words in (("web", WEB), ("devices", DEVICES)))


def make_project(name: str, words: Mapping[str, str]) -> ProjectMemories:
    lists = {kind: text.split() for kind, text in words.items()}
    texts = {f"preference-{at}": text for at, text in enumerate(PREFERENCES)}
    asked = [Asked(text, f"preference-{at}") for at, text in PREFERENCE_ASKED.items()]
    for at, (title, text, question, task) in enumerate(_facts(lists)):
        key = title.replace(" ", "-").lower()
        texts[key] = f"{title}\n{text}"
        asked.append(Asked(question if at % 2 else task, key))
    for at, part in enumerate(lists["part"]):
        for lead, *values in DETAIL:
            texts[f"{part}-{lead.split()[0]}"] = f"{part} is {lead} {values[at % len(values)]}."
    return ProjectMemories(name, dict(list(texts.items())[:SIZE]), asked)


def _facts(lists: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, ...]]:
    at = 0
    for kind, facts in GROUPS:
        for one in lists[kind]:
            for fact in facts:
                at += 1
                filled = {
                    "person": lists["person"][at % len(lists["person"])],
                    "host": lists["host"][at % len(lists["host"])],
                    "tool": lists["tool"][at % len(lists["tool"])],
                    "part": "",
                    "day": DAYS[at % len(DAYS)],
                    "number": 3 + at % 19,
                    kind: one,
                }
                yield tuple(text.format(**filled) for text in fact)
