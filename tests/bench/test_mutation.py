"""Mutants: which lines are changed and how, which tests are run for them, and what is noticed."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest
from bench.mutation import PACKAGES, choose_mutants, choose_tests, mirrored_folder, run_mutants
from bench.mutation_plugin import LineMap
from bench.mutation_sites import Mutant, add_probes, compiles, find_mutants

from tests.contracts.source_tree import ROOT

SOURCE = dedent(
    '''
    """Docs."""
    LIMIT = 5

    def choose(given: "str", most: int = 3) -> "bool":
        """More docs."""
        if given.get("kind") == "a" and most > 2:
            log.note(f"took {most + 1}")
            return True
        value: "int" = cast("int", given)
        raise ValueError("too long: é") if value is None else KeyError(1)
    '''
)


def changed(source: str) -> set[tuple[str, str]]:
    return {(mutant.operator, mutant.mutated.strip()) for mutant in find_mutants("m.py", source)}


def test_each_operator_changes_its_part_of_the_line() -> None:
    assert changed(SOURCE) == {
        ("negate condition", 'if (not (given.get("kind") == "a" and most > 2)):'),
        ("swap and/or", 'if given.get("kind") == "a" or most > 2:'),
        ("swap comparison", 'if given.get("kind") != "a" and most > 2:'),
        ("swap comparison", 'if given.get("kind") == "a" and most >= 2:'),
        ("change string", "if given.get('kindx') == \"a\" and most > 2:"),
        ("change string", "if given.get(\"kind\") == 'ax' and most > 2:"),
        ("off by one", 'if given.get("kind") == "a" and most > 3:'),
        ("drop statement", "pass"),
        ("return early", "return"),
        ("return otherwise", "return False"),
        ("negate condition", 'raise ValueError("too long: é") if (not (value is None)) else KeyError(1)'),
        ("swap comparison", 'raise ValueError("too long: é") if value is not None else KeyError(1)'),
        ("off by one", 'raise ValueError("too long: é") if value is None else KeyError(2)'),
    }


def test_a_mutant_changes_one_line_and_no_other() -> None:
    for mutant in find_mutants("m.py", SOURCE):
        pairs = zip(SOURCE.split("\n"), mutant.apply(SOURCE).split("\n"), strict=True)
        assert [at for at, (old, new) in enumerate(pairs, 1) if old != new] == [mutant.line]
        assert compiles(mutant, SOURCE)


def test_a_mutant_of_another_source_is_refused() -> None:
    mutant = Mutant("m.py", 3, "off by one", "LIMIT = 7", "LIMIT = 8")
    with pytest.raises(ValueError, match="choose mutants again"):
        mutant.apply(SOURCE)


def test_a_function_whose_result_is_cached_is_marked() -> None:
    (mutant,) = find_mutants("m.py", "@lru_cache(1)\ndef one():\n    return 1 if x else y\n")[:1]
    assert mutant.is_cached


def test_the_seed_alone_decides_which_mutants_are_chosen(tmp_path: Path) -> None:
    folder = tmp_path / "src" / "sevenfold" / "core"
    folder.mkdir(parents=True)
    folder.joinpath("m.py").write_text(SOURCE, encoding="utf-8")
    chosen = [choose_mutants(["core"], 2, seed, tmp_path) for seed in range(8)]
    assert chosen == [choose_mutants(["core"], 2, seed, tmp_path) for seed in range(8)]
    assert len({tuple(some) for some in chosen}) > 1
    assert all(len({mutant.line for mutant in some}) == 2 for some in chosen)


def test_each_package_is_there() -> None:
    assert [package for package in PACKAGES if not (ROOT / "src" / "sevenfold" / package).is_dir()] == []


def test_tests_are_looked_for_in_the_nearest_folder_that_has_some(tmp_path: Path) -> None:
    (tmp_path / "tests" / "layers" / "recall").mkdir(parents=True)
    (tmp_path / "tests" / "layers" / "test_all.py").touch()
    assert mirrored_folder("src/sevenfold/layers/recall/rank.py", tmp_path) == "tests/layers"
    (tmp_path / "tests" / "layers" / "recall" / "test_rank.py").touch()
    assert mirrored_folder("src/sevenfold/layers/recall/rank.py", tmp_path) == "tests/layers/recall"


def test_the_tests_that_run_the_line_are_chosen_unless_they_cannot_be_told() -> None:
    mutant = Mutant("m.py", 4, "off by one", "", "")
    known = LineMap(runs={"m.py:4": ["a", "b"]}, failed=["b"], seconds={})
    assert choose_tests(mutant, known) == ["a"]
    assert choose_tests(replace(mutant, is_cached=True), known) == []
    assert choose_tests(mutant, LineMap(runs={"m.py:4": ["", "a"]}, failed=[], seconds={})) == []


def test_a_probe_stands_before_the_statement_of_its_line() -> None:
    source = "def f(x):\n    if x:\n        y = (\n            1\n        )\n    elif x + 1:\n        pass\n"
    probed = add_probes(source, [4, 6]).split("\n")
    assert [(at, line.strip()[-3:]) for at, line in enumerate(probed) if "mutation_probe" in line] == [
        (1, "(6)"),
        (3, "(4)"),
    ]
    compile("\n".join(probed), "probed", "exec")


CHECKED = """
def is_large(size):
    return size > 10


def is_small(size):
    if size < 5:
        return True
    return False
"""
TESTS = """
from sevenfold.core.sizes import is_large, is_small


def test_large():
    assert is_large(11) and not is_large(10)


def test_small():
    assert is_small(1)


def test_broken():
    assert is_small(7)
"""


@pytest.mark.story
def test_a_mutant_that_a_test_fails_on_is_noticed_and_the_source_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "src" / "sevenfold" / "core" / "sizes.py"
    tests = tmp_path / "tests" / "core" / "test_sizes.py"
    for file, text in ((source, CHECKED), (tests, TESTS)):
        file.parent.mkdir(parents=True)
        file.write_text(text, encoding="utf-8")
    source.parent.with_name("__init__.py").touch()
    shutil.copytree(ROOT / "bench", tmp_path / "bench")
    mutants = [
        mutant
        for mutant in find_mutants("src/sevenfold/core/sizes.py", CHECKED)
        if mutant.mutated.strip() in ("return size >= 10", "if size <= 5:")
    ]
    noticed, survived = run_mutants(mutants, 1, tmp_path)
    assert (noticed.mutant.line, noticed.outcome, noticed.tests) == (3, "noticed", 1)
    assert (survived.mutant.line, survived.outcome, survived.tests) == (7, "survived", 1)
    assert source.read_text(encoding="utf-8") == CHECKED
    assert "fails without a mutant: tests/core/test_sizes.py::test_broken" in capsys.readouterr().err
