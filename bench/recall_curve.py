"""What silence costs: at each certainty that recall may ask for, how much of what the ranking finds is lost,
and how many prompts that ask for nothing bring anything. What is shipped is marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from recall_delivered import SETTINGS, Directory, make_directories
from recall_fresh import FreshFile, list_texts, read_fresh_directories
from recall_memories import ProjectMemories, list_projects
from recall_sets import CUT, QuestionSet, Scores
from recall_silence import list_generic_prompts
from recall_silence_fresh import FRESH_SETS, list_fresh_prompts

from sevenfold.layers.memory.recall.policy import MIN_CERTAINTY, estimate_certainty
from sevenfold.layers.memory.search.vectors import TextEncoder

LEVELS = (0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65)
assert MIN_CERTAINTY in LEVELS
GENERIC = "generic"
NOISE_SETS = (*FRESH_SETS, GENERIC)


def measure_certainty(directory: Directory, prompt: str) -> float:
    """Of the most certain of those that would be shown."""
    first = directory.find(prompt)[: SETTINGS.max_files]
    return max((estimate_certainty(one) for one in first), default=0.0)


def report_curve(sets: Sequence[QuestionSet], encoder: TextEncoder | None, cache: Path | None) -> None:
    projects, fresh = list_projects(), read_fresh_directories()
    found = {one.name: _ask_set(one, encoder, cache) for one in sets}
    found.update({f"project {one.name}": _ask_project(one, encoder, cache) for one in projects})
    found.update({one["name"]: _ask_fresh(one, encoder, cache) for one in fresh})
    unnamed = dict(make_directories(sets))
    named = {
        **{f"project {one.name}": one.texts for one in projects},
        **{one["name"]: list_texts(one) for one in fresh},
    }
    noise = {
        name: _ask_for_nothing(Directory(documents, encoder, cache, is_named=name in named))
        for name, documents in {**unnamed, **named}.items()
    }
    _print_noise(noise)
    _print_levels(found, noise)


Asked: TypeAlias = Sequence[tuple[float, float]]
"""Of each question, how certain recall is, and the recall of the ranking."""


def _ask_set(found: QuestionSet, encoder: TextEncoder | None, cache: Path | None) -> Asked:
    spaces = {name: Directory(each, encoder, cache) for name, each in found.spaces.items()}
    return [_ask(spaces[one.space], one.text, one.gold) for one in found.questions]


def _ask_project(found: ProjectMemories, encoder: TextEncoder | None, cache: Path | None) -> Asked:
    directory = Directory(found.texts, encoder, cache, is_named=True)
    return [_ask(directory, one.text, frozenset([one.gold])) for one in found.asked]


def _ask_fresh(found: FreshFile, encoder: TextEncoder | None, cache: Path | None) -> Asked:
    directory = Directory(list_texts(found), encoder, cache, is_named=True)
    return [_ask(directory, one["text"], frozenset([one["key"]])) for one in found["asked"]]


def _ask(directory: Directory, prompt: str, gold: frozenset[str]) -> tuple[float, float]:
    first = directory.names(directory.find(prompt)[:CUT])
    return measure_certainty(directory, prompt), len(gold & set(first)) / len(gold)


Noise: TypeAlias = Mapping[tuple[str, bool], Scores]
"""Certainties by set of prompts, and whether they are of the kinds that may be tuned on."""


def _ask_for_nothing(directory: Directory) -> Noise:
    return {
        (name, is_tuned): np.array(
            [measure_certainty(directory, one) for one in _list_prompts(name, is_tuned=is_tuned)]
        )
        for name in NOISE_SETS
        for is_tuned in (True, False)
    }


def _list_prompts(name: str, *, is_tuned: bool) -> Sequence[str]:
    if name == GENERIC:
        return [one.text for one in list_generic_prompts() if one.is_unseen != is_tuned]
    return list_fresh_prompts(name, is_tuned=is_tuned)


def _print_noise(noise: Mapping[str, Noise]) -> None:
    print(
        "\nfour sets that ask for nothing: how many bring anything, of the kinds tuned on and of the others"
    )
    print(f"{'directory':19}" + "".join(f"{name:>20}" for name in NOISE_SETS))
    for directory, each in noise.items():
        shares = ((_share(each[name, True]), _share(each[name, False])) for name in NOISE_SETS)
        print(f"{directory[:19]:19}" + "".join(f"{tuned:12.1%} {other:7.1%}" for tuned, other in shares))


def _print_levels(found: Mapping[str, Asked], noise: Mapping[str, Noise]) -> None:
    print("\nat each certainty asked for: noise of kinds not tuned on, over all directories; recall lost")
    print("certainty" + "".join(f"{name[:14]:>16}" for name in (*NOISE_SETS, *found)))
    for level in LEVELS:
        noisy = [
            np.mean([_share(each[name, False], level) for each in noise.values()]) for name in NOISE_SETS
        ]
        lost = [np.mean([right * (sure < level) for sure, right in each]) for each in found.values()]
        mark = "   shipped" if level == MIN_CERTAINTY else ""
        print(f"{level:9}" + "".join(f"{value:16.3f}" for value in (*noisy, *lost)) + mark)


def _share(certainties: Scores, level: float = MIN_CERTAINTY) -> float:
    return float(np.mean(certainties >= level))
