"""Directories as people name them, with questions and prompts that ask for nothing, written to see what
recall is worth on other material.

`later` are sixty prompts more, nearly all of which share a word with a memory.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, cast

import numpy as np
from recall_delivered import SETTINGS, Directory
from recall_sets import CUT

from sevenfold.layers.memory.recall.policy import RecallFacts, choose_recalled
from sevenfold.layers.memory.search.vectors import TextEncoder

_FILE = Path(__file__).with_suffix(".json")


class NamedText(TypedDict):
    key: str
    description: str
    body: str


class AskedText(TypedDict):
    text: str
    key: str


class FreshFile(TypedDict):
    name: str
    written: str
    memories: list[NamedText]
    asked: list[AskedText]
    generic: list[str]
    later: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshFigures:
    ranked: float
    delivered: float
    generic: float
    later: float
    shared: float
    """Of the generic prompts, those that share a word with a memory."""


def read_fresh_directories() -> list[FreshFile]:
    return cast("list[FreshFile]", json.loads(_FILE.read_text(encoding="utf-8")))


def list_texts(found: FreshFile) -> dict[str, str]:
    return {one["key"]: f"{one['description']}\n{one['body']}" for one in found["memories"]}


def measure_fresh(found: FreshFile, encoder: TextEncoder | None, cache: Path | None) -> FreshFigures:
    directory = Directory(list_texts(found), encoder, cache, is_named=True)

    def show(prompt: str) -> list[str]:
        return directory.names(choose_recalled(directory.find(prompt), RecallFacts(), SETTINGS))

    def count_noise(prompts: Sequence[str]) -> float:
        return float(np.mean([bool(show(prompt)) for prompt in prompts]))

    asked = found["asked"]
    first = [directory.names(directory.find(one["text"])[:CUT]) for one in asked]
    return FreshFigures(
        ranked=float(np.mean([one["key"] in names for one, names in zip(asked, first, strict=True)])),
        delivered=float(np.mean([one["key"] in show(one["text"]) for one in asked])),
        generic=count_noise(found["generic"]),
        later=count_noise(found["later"]),
        shared=float(np.mean([directory.holds_word_of(prompt) for prompt in found["generic"]])),
    )


def report_fresh(encoder: TextEncoder | None, cache: Path | None) -> None:
    print("\ndirectory             memories  asked  ranked  delivered  share a word  generic  sixty more")
    for found in read_fresh_directories():
        one = measure_fresh(found, encoder, cache)
        print(
            f"{found['name'][:20]:20} {len(found['memories']):9} {len(found['asked']):6} {one.ranked:7.3f} "
            f"{one.delivered:10.3f} {one.shared:13.1%} {one.generic:8.1%} {one.later:11.1%}"
            f"  {found['written']}"
        )
