"""What `sevenfold` offers, and the import paths that it offered before."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import cast, get_args, get_type_hints

import pytest

import sevenfold
from sevenfold._moved import MOVED
from sevenfold.core.events import Event

OLD_NAMES = [(module, name) for module, names in MOVED.items() for name in names]


@pytest.mark.parametrize("name", sevenfold.__all__)
def test_every_public_name_can_be_imported_and_is_listed(name: str) -> None:
    assert getattr(sevenfold, name) is not None
    assert name in dir(sevenfold)


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = sevenfold.Nothing


@pytest.mark.parametrize(("module", "name"), OLD_NAMES, ids=str)
def test_an_old_import_path_works_and_says_where_the_name_is_now(module: str, name: str) -> None:
    target, _, attribute = MOVED[module][name].partition(":")
    with pytest.warns(DeprecationWarning, match=f"import {attribute} from {target}"):
        found = getattr(import_module(module), name)
    assert found is getattr(import_module(target), attribute)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("sevenfold.core.prices", "Catalog"),
        ("sevenfold.core.memories", "write_memory"),
        ("sevenfold.core.secrets", "find_secrets"),
        ("sevenfold.core.tokens", "Tally"),
        ("sevenfold.integrations.memory_tool", "memory_tool"),
        ("sevenfold.providers.anthropic", "AnthropicProvider"),
        ("sevenfold.providers.local", "LocalProvider"),
        ("sevenfold.store.project", "Project"),
        ("sevenfold.store.transcript", "Transcript"),
    ],
)
def test_a_documented_path_that_did_not_move_still_works(module: str, name: str) -> None:
    assert getattr(import_module(module), name).__name__ == name


def test_an_old_module_has_no_other_names() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = import_module("sevenfold.engine").Nothing


def test_a_module_that_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        import_module("sevenfold.nothing")


MAX_SHOWN_TYPES = 12
"""In one annotation. An editor shows the whole of a union where it should show a name."""


def count_types(annotation: object) -> int:
    """How many types an editor shows for an annotation."""
    below = [part for part in get_args(annotation) if not isinstance(part, (str, bytes))]
    parts = [
        each for part in below for each in (cast("list[object]", part) if isinstance(part, list) else [part])
    ]
    return sum(map(count_types, parts)) if parts else 1


@pytest.mark.parametrize("name", sorted(set(sevenfold.__all__) - {"__version__"}))
def test_no_signature_shows_a_long_union(name: str) -> None:
    public = getattr(sevenfold, name)
    functions = (
        [public]
        if not isinstance(public, type)
        else [getattr(public, member) for member in dir(public) if not member.startswith("_")]
    )
    for function in functions:
        hints = get_type_hints(function) if callable(function) else {}
        for argument, annotation in hints.items():
            is_short = annotation == Event or count_types(annotation) <= MAX_SHOWN_TYPES
            assert is_short, f"{name}, {function}: {argument}"


def test_a_long_union_is_counted() -> None:
    assert count_types(Callable[[int | str, bytes], None]) == 4
