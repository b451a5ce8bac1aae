"""Recall of memories beside other ways to search, on the same public question sets.

    python bench/peer_recall.py --data DIR [--write docs/peers.md]

Recall@5: the share of the right documents among the first five. Ours by words, and by words and meanings
where the weights are installed (`make models`); plain BM25 by whichever of two usual constants is better on
the set; SQLite FTS5, the engine under the text search of basic-memory, by whichever of two tokenizers is
better on the set (one is that of basic-memory). No model is asked. mem0 needs an embedding model even without
a language model, and is left out.
"""

from __future__ import annotations

import argparse
import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from recall import choose_encoder
from recall_sets import CUT, QuestionSet, fused, read_sets, recalls, scaled, score_meanings, score_words

from sevenfold.layers.memory.search.vectors import WORDS_SHARE

TABLE = re.compile(r"(<!-- recall: begin -->\n).*?(<!-- recall: end -->)", re.DOTALL)
TOKENIZERS = ("porter", "unicode61 tokenchars 0x2F")


class FtsIndex:
    """The documents of one space in SQLite's full-text search."""

    def __init__(self, documents: dict[str, str], tokenizer: str) -> None:
        self._database = sqlite3.connect(":memory:")
        columns = f"key UNINDEXED, text, tokenize='{tokenizer}'"
        self._database.execute(f"CREATE VIRTUAL TABLE texts USING fts5({columns})")
        self._database.executemany("INSERT INTO texts VALUES (?, ?)", documents.items())

    def find(self, question: str) -> list[str]:
        words = sorted(set(re.findall(r"\w+", question.lower())))
        if not words:
            return []
        query = " OR ".join(f'"{word}"' for word in words)
        found = self._database.execute(
            "SELECT key FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?", (query, CUT)
        )
        return [str(row[0]) for row in found]


def recall_fts(found: QuestionSet, tokenizer: str) -> float:
    indexes = {name: FtsIndex(documents, tokenizer) for name, documents in found.spaces.items()}
    shares = [
        len(question.gold & set(indexes[question.space].find(question.text))) / len(question.gold)
        for question in found.questions
    ]
    return sum(shares) / len(shares)


def measure(found: QuestionSet, *, has_meanings: bool) -> list[float]:
    values = [
        float(recalls(found, found.plain).mean()),
        max(recall_fts(found, tokenizer) for tokenizer in TOKENIZERS),
        float(recalls(found, found.words).mean()),
    ]
    if has_meanings:
        ours = fused(found.words, found.meanings, WORDS_SHARE, scaled)
        values.append(float(recalls(found, ours).mean()))
    return values


def format_table(rows: Sequence[tuple[str, int, list[float]]], *, has_meanings: bool) -> str:
    names = ["plain BM25", "SQLite FTS5", "**Sevenfold**, words"]
    names += ["**Sevenfold**, words and meanings"] if has_meanings else []
    head = f"| recall@5 | questions | {' | '.join(names)} |\n|---|---|{'---|' * len(names)}"
    lines = (
        f"| {name} | {count} | {' | '.join(f'{value:.2f}' for value in values)} |"
        for name, count, values in rows
    )
    return "\n".join((head, *lines))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--home", type=Path, default=Path.home() / ".sevenfold")
    parser.add_argument("--cache", type=Path, help="keeps vectors between runs")
    parser.add_argument("--write", type=Path, help="a page with the marks of the table")
    options = parser.parse_args()
    encoder = choose_encoder(options.home)
    rows: list[tuple[str, int, list[float]]] = []
    for found in read_sets(options.data):
        score_words(found)
        if encoder is not None:
            score_meanings(found, encoder, options.cache)
        rows.append((found.name, len(found.questions), measure(found, has_meanings=encoder is not None)))
        print(rows[-1], flush=True)
    table = format_table(rows, has_meanings=encoder is not None)
    print(table)
    if options.write:
        page = options.write.read_text(encoding="utf-8")
        options.write.write_text(
            TABLE.sub(lambda mark: f"{mark[1]}{table}\n{mark[2]}", page), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
