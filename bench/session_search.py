"""How long `sevenfold search` takes: building the index, a query, and a run with one session that grew.

    python bench/session_search.py --data FOLDER [--megabytes 500]

Copies of the recorded sessions, each with words of its own, make up the megabytes. Limits: the index in 60 s
for 500 MB, a query in 50 ms (95th percentile, the check for secrets included).
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from statistics import quantiles

from sevenfold.store.foreign.transcripts import find_transcripts
from sevenfold.store.session_index.database import SESSION_INDEX_FOLDER
from sevenfold.store.session_index.finder import SessionQuery, hide_secrets
from sevenfold.store.session_index.index import SESSION_INDEX_FILE, SessionIndex

INDEX_SECONDS_PER_MB = 60 / 500
QUERY_SECONDS = 0.050
QUERIES = 200


def copy_sessions(data: Path, target: Path, megabytes: int) -> None:
    """Copies under new names until there are enough; long words differ in each, so that no two are equal."""
    files = [item.path for item in find_transcripts([data / "sessions"]).files]
    made, copy = 0, 0
    while made < megabytes * 1_000_000:
        for path in files:
            text = path.read_bytes()
            if copy:
                text = re.sub(rb"\b([a-z]{11})\b", rb"\g<1>%d" % copy, text)
            name = target / f"{copy}" / path.parent.name / path.name
            name.parent.mkdir(parents=True, exist_ok=True)
            name.write_bytes(text)
            made += len(text)
            if made >= megabytes * 1_000_000:
                return
        copy += 1


def make_queries(data: Path, count: int) -> list[str]:
    """One to six words that stand together in some message."""
    random = Random(7)
    files = [item.path for item in find_transcripts([data / "sessions"]).files]
    queries: list[str] = []
    while len(queries) < count:
        words = re.findall(r"[A-Za-z_]{3,}", random.choice(files).read_text(errors="replace")[:200_000])
        if len(words) > 10:
            start = random.randrange(len(words) - 6)
            queries.append(" ".join(words[start : start + random.randint(1, 6)]))
    return queries


def ask(index: SessionIndex, queries: Sequence[str]) -> list[float]:
    seconds: list[float] = []
    for text in queries:
        began = time.perf_counter()
        for hit in index.search(SessionQuery(text=text)):
            hide_secrets(hit.snippet, hit.context)
        seconds.append(time.perf_counter() - began)
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a folder with recorded sessions")
    parser.add_argument("--megabytes", type=int, default=500, help="how much to index (500)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "sessions")
        copy_sessions(options.data, folder, options.megabytes)
        files = find_transcripts([folder]).files
        size_mb = sum(item.size_bytes for item in files) / 1e6
        with closing(SessionIndex.open(Path(scratch))) as index:
            began = time.perf_counter()
            index.update(files)
            built = time.perf_counter() - began
            queries = make_queries(options.data, QUERIES)
            ask(index, queries[:20])
            percentiles = quantiles(ask(index, queries), n=20)
            with files[0].path.open("ab") as file:
                file.write(b'{"role": "user", "content": "one more"}\n')
            began = time.perf_counter()
            index.update(find_transcripts([folder]).files)
            grown = time.perf_counter() - began
        stored_mb = Path(scratch, SESSION_INDEX_FOLDER, SESSION_INDEX_FILE).stat().st_size / 1e6
    found = {
        "sessions": len(files),
        "megabytes": round(size_mb, 1),
        "index_megabytes": round(stored_mb, 1),
        "build_seconds": round(built, 1),
        "build_of_limit": round(built / (size_mb * INDEX_SECONDS_PER_MB), 2),
        "query_p50_ms": round(percentiles[9] * 1e3, 1),
        "query_p95_ms": round(percentiles[18] * 1e3, 1),
        "query_of_limit": round(percentiles[18] / QUERY_SECONDS, 2),
        "update_ms": round(grown * 1e3, 1),
    }
    print(
        json.dumps(found) if options.json else "\n".join(f"{key:16} {value}" for key, value in found.items())
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
