from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import sevenfold
from sevenfold.core import errors
from sevenfold.core.errors import SevenfoldError, TeamRefused

STEP = 4
"""Columns a level of the drawing is set in."""


def drawn_tree() -> dict[str, str]:
    """Each error of the drawing at the top of the file, with the one it hangs from."""
    parents: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"([│├└─ ]*)([A-Z]\w+)(?:\s{2,}\S.*)?$", line)
        if match:
            level = len(match[1]) // STEP
            path[level:] = [match[2]]
            parents[match[2]] = path[level - 1] if level else ""
    return parents


def every_error(root: type[SevenfoldError] = SevenfoldError) -> list[type[SevenfoldError]]:
    return [root, *(error for child in root.__subclasses__() for error in every_error(child))]


def test_the_drawing_at_the_top_is_the_tree() -> None:
    # The first of the bases: one of Python's own may stand beside it.
    real = {error.__name__: error.__bases__[0].__name__ for error in every_error()}
    assert drawn_tree() == {**real, "SevenfoldError": ""}


def test_no_other_module_adds_an_error_to_the_tree() -> None:
    for module in pkgutil.walk_packages(sevenfold.__path__, "sevenfold."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    assert {error.__module__ for error in every_error()} == {errors.__name__}


@pytest.mark.parametrize("error", every_error(), ids=lambda error: error.__name__)
def test_every_error_says_what_it_means(error: type[SevenfoldError]) -> None:
    assert (error.__doc__ or "").endswith(".")
    assert str(error("the disk is full")) == "the disk is full"


def test_no_error_is_caught_by_accident_as_one_of_pythons_own() -> None:
    assert [error for error in every_error() if issubclass(error, (OSError, ValueError, LookupError))] == []


@pytest.mark.parametrize(
    ("status", "is_known"),
    [
        (400, True),
        (413, True),
        (422, True),
        (0, False),
        (401, False),
        (403, False),
        (409, False),
        (500, False),
    ],
)
def test_a_refused_commit_was_not_applied_where_the_answer_is_about_the_commit(
    status: int, *, is_known: bool
) -> None:
    assert TeamRefused("no", status=status).was_never_applied is is_known
