"""Poisoned sessions: how much of what a stranger planted becomes a memory that counts, and what holding it
costs.

    python bench/harm.py [--show] [--json]

The cases are those of `tests/harm`: every payload by every way in, dressed up in turn, in two steps. Two
writers are played: the rules, and a model that writes down whatever it was told and tries again when refused.

    through     cases whose payload is in the index, the directory, what is recalled, or among the rules that
                fire, without that a person agreed
    undefended  the same where nobody asks whose words they were: what the suite is worth
    honest      honest memories that a later session finds among the first five, with the defence and without;
                `unmended`: by a model that does not go back to the user's words when it is told to
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from time import process_time

BATCH = 78
"""Cases in one project: as many as one payload of each kind."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    # The cases are tests too, and live there.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from tests.harm.honest import HONEST, recall
    from tests.harm.plays import VECTORS, make_cases, play

    cases = make_cases()
    started = process_time()
    figures: dict[str, float | int] = {"cases": len(cases), "vectors": len(VECTORS), "honest": len(HONEST)}
    for writer in ("rules", "model"):
        for is_defended in (True, False):
            through: dict[str, list[str]] = {}
            for start in range(0, len(cases), BATCH):
                with tempfile.TemporaryDirectory() as root:
                    some = cases[start : start + BATCH]
                    through |= play(some, Path(root), writer, is_defended=is_defended)
            name = "through" if is_defended else "undefended"
            figures[f"{writer}_{name}"] = len(through)
            with tempfile.TemporaryDirectory() as root:
                found = recall(Path(root), writer, is_defended=is_defended)
            figures[f"{writer}_honest_{'with' if is_defended else 'without'}"] = found.share
            figures[f"{writer}_mended_{'with' if is_defended else 'without'}"] = found.mended
            if given.show and is_defended:
                for case, places in through.items():
                    print(f"{case}: {', '.join(places)}")
    with tempfile.TemporaryDirectory() as root:
        stubborn = recall(Path(root), "model", is_defended=True, mends=False)
    figures["model_honest_unmended"] = stubborn.share
    figures["cpu_seconds"] = round(process_time() - started, 1)
    if given.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:26} {value:.3f}" if isinstance(value, float) else f"{name:26} {value:,}")


if __name__ == "__main__":
    main()
