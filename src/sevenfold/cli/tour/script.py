"""The script of the tour: the sample repository, the steps, and the replies of the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sevenfold.core.errors import CallUnexpected
from sevenfold.core.messages import Text
from sevenfold.simulator.brain import Prompt, Reply, call_tool, say
from sevenfold.store.safe_git import init_repository, run_git_blocking

# The sample repository: a small shop whose report is a cent off, and a log too long to read.

COUNTRIES = ("austria", "belgium", "denmark", "finland", "france", "germany")
SAMPLE_LOG_LINES = 2_400
RATE_ROWS = 150
"""Of each country's rates: files as long as those that agents read all day."""

REPORT_SOURCE = '''\
"""The nightly report: what was sold, and the tax on it."""

from decimal import Decimal

from shop import rates

CENT = Decimal("0.01")


def tax(country, amount):
    """The tax on an amount, to the cent."""
    return (amount * rates.of(country)).quantize(CENT)


def total(lines):
    """The sum of an order, tax included."""
    return sum(amount + tax(country, amount) for country, amount in lines)
'''
LAW_TEXT = "\n".join(
    f"§ {number} Goods of group {number % 17} are taxed at {number * 13 % 29} in the hundred of their price, "
    "and half a cent is a cent."
    for number in range(1, 261)
)
"""Long enough to weigh on a prompt."""
RATES_SOURCE = '''\
"""What each country takes."""

from decimal import Decimal


def of(country):
    return {"austria": Decimal("0.2"), "germany": Decimal("0.19")}.get(country, Decimal("0.21"))
'''
TEST_SOURCE = """\
import unittest
from decimal import Decimal

from shop.report import tax


class TaxTest(unittest.TestCase):
    def test_half_a_cent_is_a_cent(self):
        self.assertEqual(tax("austria", Decimal("0.125")), Decimal("0.03"))
"""


def write_sample_repository(folder: Path) -> None:
    """Write it and commit it."""
    files = {
        "shop/__init__.py": "",
        "shop/report.py": REPORT_SOURCE,
        "shop/rates.py": RATES_SOURCE,
        "tests/__init__.py": "",
        "tests/test_report.py": TEST_SOURCE,
        "log/nightly.log": _log(),
        **{f"shop/{country}.py": _country(country) for country in COUNTRIES},
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    who = ("-c", "user.name=Tour", "-c", "user.email=tour@example.invalid")
    init_repository(folder)
    for command in (("add", "."), (*who, "commit", "-qm", "The shop")):
        run_git_blocking(folder, *command)


def _log() -> str:
    lines = (
        f"2026-11-14 02:{number // 60 % 60:02}:{number % 60:02} shop.report INFO order {10_000 + number} "
        f"{COUNTRIES[number % len(COUNTRIES)]} {number * 37 % 9_973 / 100:.2f} EUR"
        for number in range(SAMPLE_LOG_LINES)
    )
    return "\n".join([*lines, "2026-11-14 02:59:59 shop.report ERROR totals differ by 0.01 EUR", ""])


def _country(name: str) -> str:
    rows = "\n".join(
        f'    ("{name}-{number:03}", "group {number % 17}", {number * 13 % 29 / 100:.2f}, {number % 7}),'
        for number in range(RATE_ROWS)
    )
    return f'"""Goods that {name.title()} taxes on its own terms."""\n\nGOODS = (\n{rows}\n)\n'


TEST_COMMAND = "python3 -m unittest -q"
CHECK_PROMPT = "Check the rates of"
COUNT_PROMPT = "Count the orders of the night and tell your lead"
"""How the work of an agent of the tour begins, by which its requests are known."""
COUNT_REPLY = "2,400 orders came in that night."
EXTRACTION_OPENING = "Look for what is worth remembering"
"""How the prompt of layer 5's fork begins."""

LESSON_TEXT = "Always run the tests before a commit: a red build cost us a day."
LESSON_MEMORY: Mapping[str, object] = {
    "action": "write",
    "name": "tests-before-commit",
    "type": "feedback",
    "description": "Run the tests before every commit",
    "content": LESSON_TEXT,
    "applies_to": ["phase:before-commit"],
}
"""What the fork makes of the user's words: when the memory matters is told with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TourStep:
    """One turn: what is said before it, what the person types, and how the model answers, call by call."""

    title: str
    narration: str
    prompt: str
    replies: tuple[Reply, ...]
    hours_before: int = 0
    """That pass first."""
    compacts_before: bool = False
    """The person types /compact first."""
    pasted: str = ""
    """What goes with the prompt and is not shown."""


def reply_with_calls(text: str, *calls: tuple[str, Mapping[str, object]]) -> Reply:
    return Reply((*say(text).blocks, *(call_tool(name, given) for name, given in calls)))


def _read(name: str) -> tuple[str, Mapping[str, object]]:
    return ("read", {"file_path": name})


def shell_call(command: str, why: str) -> tuple[str, Mapping[str, object]]:
    return ("shell", {"command": command, "description": why, "access": "open"})


def _agent(what: str, prompt: str, **given: object) -> tuple[str, Mapping[str, object]]:
    return ("agent", {"description": what, "prompt": prompt, **given})


def _letter(text: str) -> tuple[str, Mapping[str, object]]:
    return ("send_message", {"to": "lead", "summary": "orders counted", "message": text})


def _edit(old: str, new: str) -> tuple[str, Mapping[str, object]]:
    return ("edit", {"file_path": "shop/report.py", "old_string": old, "new_string": new})


def _files(first: int, last: int) -> tuple[str, ...]:
    return tuple(f"shop/{country}.py" for country in COUNTRIES[first:last])


TOUR_STEPS = (
    TourStep(
        title="A question",
        narration="The agent reads code and a log of 160 KB, which is too large for a prompt.",
        prompt="The nightly report is one cent off. Why?",
        replies=(
            reply_with_calls(
                "I look at the report, its test and the log.",
                _read("shop/report.py"),
                _read("tests/test_report.py"),
                shell_call("cat log/nightly.log", "look at the log"),
            ),
            reply_with_calls("The totals differ. I look at the tax tables.", *map(_read, _files(0, 2))),
            say(
                "`quantize` rounds half a cent to the **even** neighbour unless it is told otherwise: "
                "0.025 becomes 0.02, and the law requires 0.03.\n\n"
                "- `shop/report.py` rounds this way\n- the country tables are correct"
            ),
        ),
    ),
    TourStep(
        title="A pause",
        narration="Two hours pass, and the provider's cache expires. The prompt must be written to the "
        "cache again anyway, so removing old results now costs nothing extra.",
        prompt=f"Fix it and run the tests. {LESSON_TEXT}",
        replies=(
            reply_with_calls(
                "I set the rounding mode.",
                _edit(".quantize(CENT)", ".quantize(CENT, ROUND_HALF_UP)"),
                _edit("import Decimal\n", "import ROUND_HALF_UP, Decimal\n"),
            ),
            reply_with_calls("", shell_call(TEST_COMMAND, "run the tests")),
            say("Fixed: half a cent is rounded up now, and the tests pass."),
        ),
        hours_before=2,
    ),
    TourStep(
        title="A long task",
        narration="The user pastes a law, and the agent reads more files. The context grows.",
        prompt="Are the other countries right too? Here is the law.",
        replies=(
            reply_with_calls("I read the next two tables.", *map(_read, _files(2, 4))),
            reply_with_calls("And the last two.", *map(_read, _files(4, 6))),
            say("All six tables match the law. No other code rounds."),
        ),
        pasted=LAW_TEXT,
    ),
    TourStep(
        title="A compaction",
        narration="The user types /compact. The session notes become the summary, without a model call, "
        "and the files that the agent read last are added again.",
        prompt="Where were we?",
        replies=(
            say("The report rounds half a cent up now, the tests pass, and all six tables were checked."),
        ),
        compacts_before=True,
    ),
    TourStep(
        title="Side work",
        narration="Two forks work in parallel. Each sends the bytes of this conversation and one more "
        "message, so that almost all of its prompt comes from the cache.",
        prompt="Let two forks check the rates of France and Germany.",
        replies=(
            reply_with_calls(
                "I start two forks.",
                _agent("check France", f"{CHECK_PROMPT} France.", kind="fork"),
                _agent("check Germany", f"{CHECK_PROMPT} Germany.", kind="fork"),
            ),
            say("Both report that every rate matches the law."),
        ),
    ),
    TourStep(
        title="A message",
        narration="A second agent with its own context works in the background and sends a message when it "
        "is done.",
        prompt="Let a second agent count the orders, and do not wait for it.",
        replies=(
            reply_with_calls(
                "I start an agent for that.",
                _agent("count the orders", f"{COUNT_PROMPT}.", name="counter", background=True),
            ),
            say("It works in the background and will send a message."),
        ),
    ),
)


@dataclass(slots=True)
class TourBrain:
    """Answers from the steps, in order; and forks and agents, by what they were asked."""

    steps: tuple[TourStep, ...] = TOUR_STEPS
    _left: list[Reply] = field(init=False)
    _has_learnt: bool = False

    def __post_init__(self) -> None:
        self._left = [reply for step in self.steps for reply in step.replies]

    async def reply(self, prompt: Prompt) -> Reply:
        asked = prompt.last_text
        if EXTRACTION_OPENING in asked:
            return self._extract(prompt)
        if CHECK_PROMPT in asked:
            return say(f"{asked.rpartition(CHECK_PROMPT)[2].strip(' .')}: every rate matches the law.")
        if COUNT_PROMPT in asked:
            return (
                say("Counted and reported.") if prompt.results else reply_with_calls("", _letter(COUNT_REPLY))
            )
        if COUNT_REPLY in asked:
            return say("The agent reports 2,400 orders.")
        if "has ended" in asked:
            return say("The agent is done.")
        if not self._left:
            raise CallUnexpected(f"request {prompt.number} of the tour is not in its script")
        return self._left.pop(0)

    def _extract(self, prompt: Prompt) -> Reply:
        texts = (block for message in prompt.messages for block in message.blocks if isinstance(block, Text))
        said = any(LESSON_TEXT in block.text for block in texts)
        if self._has_learnt or not said:
            return say("Nothing.")
        self._has_learnt = True
        return reply_with_calls("", ("memory", LESSON_MEMORY))

    def check_done(self) -> None:
        """The tour ends where its steps end."""
