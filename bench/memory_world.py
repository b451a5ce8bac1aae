"""A project as its people speak of it over some months, and a model that writes down what they say.

Facts about forty services: said once, said again in other words, changed. The model is no good at names:
it calls the same thing another name each time, which is how duplicates come about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from sevenfold.agent.opening.background_work import DREAM_SYSTEM_PROMPT
from sevenfold.core.messages import Block, Text
from sevenfold.layers.forks.policy import FORK_MARK
from sevenfold.testing import Prompt, call_tool
from sevenfold.testing import Reply as Said

SERVICES = (
    *("billing", "search", "checkout", "ledger", "catalogue", "identity", "courier", "pricing", "inventory"),
    *("loyalty", "payout", "refund", "mailer", "scheduler", "gateway", "reporting", "telemetry", "archive"),
    *("onboarding", "translation", "thumbnail", "webhook", "session", "quota", "feature", "audit", "export"),
    *("voucher", "warehouse", "routing", "consent", "forecast", "ranking", "support", "tax", "settlement"),
    *("preview", "moderation", "dispatch", "subscription"),
)
PEOPLE = ("Ann", "Bob", "Carla", "Dmitri", "Eve", "Farid", "Grace", "Hiro", "Ines", "Jonas", "Kofi", "Lena")
STORES = ("Postgres", "SQLite", "Redis", "Cassandra", "DynamoDB", "MySQL", "CockroachDB", "MongoDB")
REGIONS = ("Frankfurt", "Dublin", "Oregon", "Virginia", "Mumbai", "Sydney", "Tokyo", "Singapore")


@dataclass(frozen=True, slots=True)
class Aspect:
    """Something that can be said of a service, in several ways."""

    names: tuple[str, ...]
    """What a model calls a memory of it, by how it was said."""
    ways: tuple[str, ...]
    values: tuple[str, ...]


WAYS = 3
"""In which each can be said."""
PORTS = tuple(str(number) for number in range(4_001, 4_900, 7))
ASPECTS = (
    Aspect(
        ("port", "listening-port", "network"),
        (
            "the {service} service listens on port {value}",
            "port {value} is what the {service} service listens on",
            "the {service} service is listening on port {value}",
        ),
        PORTS,
    ),
    Aspect(
        ("owner", "ownership", "contact"),
        (
            "the {service} service is owned by {value}",
            "{value} owns the {service} service",
            "the owner of the {service} service is {value}",
        ),
        PEOPLE,
    ),
    Aspect(
        ("store", "database", "data"),
        (
            "the {service} service keeps its data in {value}",
            "data of the {service} service is kept in {value}",
            "the {service} service keeps all its data in {value}",
        ),
        STORES,
    ),
    Aspect(
        ("region", "hosting", "location"),
        (
            "the {service} service runs in the {value} region only",
            "the {service} service only runs in the {value} region",
            "the {service} service runs only in the region of {value}",
        ),
        REGIONS,
    ),
    Aspect(
        ("freeze", "deploys", "release"),
        (
            "never deploy the {service} service after {value} o'clock",
            "after {value} o'clock never deploy the {service} service",
            "the {service} service is never deployed after {value} o'clock",
        ),
        tuple(str(hour) for hour in range(11, 19)),
    ),
    Aspect(
        ("retention", "backups", "history"),
        (
            "backups of the {service} service are kept for {value} days",
            "the {service} service has its backups kept for {value} days",
            "we keep backups of the {service} service for {value} days",
        ),
        tuple(str(days) for days in range(14, 400, 9)),
    ),
    Aspect(
        ("timeout", "patience", "limits"),
        (
            "calls to the {service} service time out after {value} ms",
            "the time-out for calls to the {service} service is {value} ms",
            "calls to the {service} service have a time-out of {value} ms",
        ),
        tuple(str(ms) for ms in range(150, 9_000, 130)),
    ),
    Aspect(
        ("dashboard", "graphs", "monitoring"),
        (
            "the dashboard of the {service} service is at https://dash.test/{service}-{value}",
            "graphs for the {service} service are at https://dash.test/{service}-{value}",
            "https://dash.test/{service}-{value} has the dashboard of the {service} service",
        ),
        tuple(f"{number:03}" for number in range(1, 90)),
    ),
)
LEADS = ("Remember that {said}.", "Please remember: {said}.", "We decided: {said}. Keep it in mind.")
BEGINNINGS = tuple(lead.partition("{")[0] for lead in LEADS)
CHAT = (
    "Look at the tests, please.",
    "What does the parser do with an empty line?",
    "Thanks, that is all for now.",
    "Run the linter and tell me what it says.",
)


@dataclass(frozen=True, slots=True)
class Subject:
    service: str
    aspect: int


@dataclass(frozen=True, slots=True)
class Saying:
    """A fact as it is said once."""

    subject: Subject
    value: str
    way: int

    @property
    def sentence(self) -> str:
        told = ASPECTS[self.subject.aspect].ways[self.way]
        return told.format(service=self.subject.service, value=self.value)

    @property
    def name(self) -> str:
        return f"{self.subject.service}-{ASPECTS[self.subject.aspect].names[self.way]}"


@dataclass(slots=True)
class World:
    """What is so, and what people say of it."""

    random: Random
    facts: dict[Subject, str] = field(default_factory=dict[Subject, str])
    """The value that was said last."""
    said: dict[str, Saying] = field(default_factory=dict[str, Saying])
    """By sentence."""

    def session(self) -> Iterator[str]:
        """What a person says in one session, turn by turn."""
        for _ in range(self.random.choice((1, 1, 2))):
            yield self._teach() if self.random.random() < 0.85 else self.random.choice(CHAT)

    def _teach(self) -> str:
        subject = Subject(self.random.choice(SERVICES), self.random.randrange(len(ASPECTS)))
        known = self.facts.get(subject)
        is_changed = known is None or self.random.random() < 0.3
        value = self.random.choice(ASPECTS[subject.aspect].values) if is_changed else known
        saying = Saying(subject, value or "", self.random.randrange(WAYS))
        self.facts[subject] = saying.value
        self.said[saying.sentence] = saying
        return self.random.choice(LEADS).format(said=saying.sentence)

    def answer(self, prompt: Prompt) -> Said:
        """The model: it answers, writes down what was taught, or tidies up."""
        if prompt.system.startswith(DREAM_SYSTEM_PROMPT):
            return self._dream(prompt)
        if FORK_MARK in _texts(prompt):
            return self._extract(prompt)
        return Said((Text("Noted."),))

    def _extract(self, prompt: Prompt) -> Said:
        if prompt.results:
            return self._mend(prompt)
        return _written([(saying, saying.name) for saying in self._taught(prompt)])

    def _mend(self, prompt: Prompt) -> Said:
        """What the gate wants written elsewhere is written there, if that is on the same service."""
        refused = "\n".join(str(result.content) for result in prompt.results if result.is_error)
        keys = re.findall(r"write the new version to ([\w/-]+)\.md", refused)
        pairs = [
            (saying, key)
            for saying in self._taught(prompt)
            for key in keys
            if key.startswith(f"{saying.subject.service}-")
        ]
        return _written(pairs)

    def _taught(self, prompt: Prompt) -> list[Saying]:
        """What the person said last, if it was something to remember."""
        texts = (text for text in reversed(_user_texts(prompt)) if text.startswith(BEGINNINGS))
        last = next(texts, "").lower()
        return [saying for sentence, saying in self.said.items() if sentence.lower() in last]

    def _dream(self, prompt: Prompt) -> Said:
        """Of several memories on one subject the newest stays; what it says otherwise counts."""
        if prompt.results:
            return Said((Text("Done."),))
        newest: dict[Subject, tuple[str, str]] = {}
        calls: list[Block] = []
        lines = re.findall(r"^- \[\w+\] (\S+)\.md \([\d-]+\): (.*)$", _texts(prompt), re.MULTILINE)
        for key, description in lines:
            saying = next((self.said[text] for text in self.said if text in description.lower()), None)
            if saying is None:
                continue
            kept = newest.setdefault(saying.subject, (key, saying.value))
            if kept[0] != key:
                why = "reworded in" if kept[1] == saying.value else "contradicted by"
                given = {"action": "delete", "name": key, "content": f"{why} {kept[0]}.md"}
                calls.append(call_tool("memory", given))
        return Said(tuple(calls) or (Text("Nothing to do."),))


def _written(sayings: list[tuple[Saying, str]]) -> Said:
    calls = [
        call_tool(
            "memory",
            {
                "action": "write",
                "name": name,
                "type": "project",
                "description": saying.sentence[:140],
                "content": f"{saying.sentence[0].upper()}{saying.sentence[1:]}.",
            },
        )
        for saying, name in sayings
    ]
    return Said(tuple(calls) or (Text("Nothing."),))


def _texts(prompt: Prompt) -> str:
    return "\n".join(_user_texts(prompt))


def _user_texts(prompt: Prompt) -> list[str]:
    return [
        "\n".join(block.text for block in message.blocks if isinstance(block, Text))
        for message in prompt.messages
        if message.role != "assistant"
    ]
