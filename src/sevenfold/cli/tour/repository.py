"""The scratch repository of the tour: a small shop whose report is a cent off, and a log too long to read."""

from __future__ import annotations

from pathlib import Path

from sevenfold.store.git.safe_git import init_repository, run_git_blocking

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
