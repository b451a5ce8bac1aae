"""How many secrets are found, how many notes are stopped for nothing, and how long the worst text takes.

Found: made-up secrets of known formats in notes, as they are and in 19 disguises. Stopped for nothing: real
memory files and the prose of real sessions, none of which holds a secret. Longest: 250 KB texts written to
take long, in seconds of processor time. With --peers, other scanners read the same notes in the same run.

Vendors: lines in the formats that vendors document, half of them of vendors without a rule, beside lines that
hold nothing; with --markdown the share of ordinary files that is stopped. Speed: 1 MB of text, and how much
longer it takes with the search for values of unknown formats.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.secret_decoys import HOSTILE, INNOCENT, VENDOR_EXAMPLES
from bench.secret_peers import peers_in, run_peer
from bench.secret_samples import PROVIDERS, TRANSFORMS, Sample, in_note, make_samples
from bench.secret_vendors import SEEN, UNSEEN, decoy_lines, vendor_lines

from sevenfold.core.secrets import find_secrets
from sevenfold.core.secrets.values import find_random_tokens

KEY = b"any sixteen bytes or more"
CANARIES = 10_000


@dataclass(frozen=True, slots=True)
class Share:
    name: str
    part: int
    of: int

    @property
    def ratio(self) -> float:
        return self.part / self.of if self.of else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One scanner on the same notes."""

    name: str
    plain: float
    disguised: float
    words: float
    """Passwords in sentences and values that only their name gives away."""
    false_blocks: int
    cpu_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorRow:
    """One scanner on the lines of vendors and on ordinary files."""

    name: str
    seen: float
    unseen: float
    precision: float
    markdown: float
    """Share of ordinary files that are stopped."""
    cpu_seconds: float

    @property
    def is_good(self) -> bool:
        return self.seen >= 0.95 and self.unseen >= 0.7 and self.precision >= 0.9 and self.markdown <= 0.015


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    megabyte_seconds: float
    """Processor time for 1 MB of ordinary text."""
    ratio: float
    """To the same without the search for values of unknown formats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    families: list[Share]
    transforms: list[Share]
    false_blocks: list[Share]
    canaries_out: Share
    slowest_text: str
    slowest_seconds: float
    peers: list[Row]
    vendors: list[VendorRow]
    speed: Speed

    @property
    def is_good(self) -> bool:
        providers = [share for share in self.families if share.name in PROVIDERS]
        return (
            sum(share.part for share in providers) >= 0.98 * sum(share.of for share in providers)
            and all(share.ratio >= 0.9 for share in self.transforms)
            and all(share.ratio <= 0.01 for share in self.false_blocks)
            and self.canaries_out.part == 0
            and self.slowest_seconds <= 0.5
            and self.vendors[0].is_good
            and self.speed.ratio <= 1.3
        )


def is_blocked(text: str) -> bool:
    return not find_secrets(text, key=KEY).is_clean


def run_report(data: Path | None, peers: Path | None, canaries: int, files: Sequence[str]) -> Report:
    chance = random.Random(7)
    say("looking for secrets as they are, and disguised")
    samples = make_samples(seed=20, each=5)
    found = families(samples, chance)
    times = {name: min(cpu_seconds(text) for _ in range(2)) for name, text in HOSTILE.items()}
    slowest = max(times, key=times.__getitem__)
    return Report(
        families=found,
        transforms=[disguised(name, chance) for name in TRANSFORMS],
        false_blocks=[]
        if data is None
        else [
            stopped("memories", memories(data)),
            stopped("prose", prose(data)),
            *(stopped(f"retrieval {folder.name}", documents(folder)) for folder in retrieval(data)),
        ],
        canaries_out=planted(canaries, chance),
        slowest_text=slowest,
        slowest_seconds=times[slowest],
        peers=[] if peers is None else compare(peers, chance),
        vendors=compare_vendors(peers, files),
        speed=measure_speed(),
    )


def families(samples: Sequence[Sample], chance: random.Random) -> list[Share]:
    found: dict[str, list[bool]] = {}
    for sample in samples:
        found.setdefault(sample.family, []).append(is_blocked(in_note(sample.value, chance)))
    return [Share(family, sum(hits), len(hits)) for family, hits in found.items()]


def disguised(name: str, chance: random.Random) -> Share:
    samples = [one for one in make_samples(seed=21) if one.family in PROVIDERS and "\n" not in one.value]
    hits = [is_blocked(in_note(TRANSFORMS[name](one.value, chance), chance)) for one in samples]
    return Share(name, sum(hits), len(hits))


def stopped(name: str, texts: Iterator[str]) -> Share:
    hits = [is_blocked(text) for text in texts]
    return Share(name, sum(hits), len(hits))


def planted(count: int, chance: random.Random) -> Share:
    """Provider secrets in notes; what passes has left the machine."""
    say(f"planting {count:,} secrets")
    samples = [one for one in make_samples(seed=22, each=count // 100 + 1) if one.family in PROVIDERS][:count]
    return Share("canaries", sum(not is_blocked(in_note(one.value, chance)) for one in samples), len(samples))


def cpu_seconds(text: str) -> float:
    started = time.process_time()
    find_secrets(text, key=KEY)
    return time.process_time() - started


def memories(data: Path) -> Iterator[str]:
    for path in sorted((data / "memory_dirs").rglob("*")):
        if path.is_file():
            yield path.read_text(encoding="utf-8", errors="replace")


def prose(data: Path) -> Iterator[str]:
    """What people and models said; no tool results."""
    for path in sorted((data / "sessions").rglob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            content = cast("dict[str, object]", json.loads(line)).get("content")
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            for block in cast("list[dict[str, str]]", blocks or []):
                if block.get("type") == "text" and block["text"].strip():
                    yield block["text"]


def retrieval(data: Path) -> list[Path]:
    return sorted(path.parent for path in (data / "retrieval").glob("*/docs.jsonl"))


def documents(folder: Path) -> Iterator[str]:
    """Texts that people and agents search in: at most 2,000, spread over the set."""
    rows = (folder / "docs.jsonl").read_text(encoding="utf-8").splitlines()
    for row in rows[:: len(rows) // 2000 + 1]:
        yield cast("dict[str, str]", json.loads(row))["text"]


def files_under(folders: Sequence[Path], most: int) -> list[str]:
    """Markdown files of at most 250 KB, each text once; spread over the folders where there are more."""
    paths = (path for folder in folders for path in sorted(folder.rglob("*.md")) if path.is_file())
    texts = (
        path.read_text(encoding="utf-8", errors="replace")
        for path in paths
        if 200 <= path.stat().st_size <= 250_000
    )
    found = list(dict.fromkeys(texts))
    return found[:: -(-len(found) // most)] if found else found


def compare_vendors(folder: Path | None, files: Sequence[str]) -> list[VendorRow]:
    lines = [*vendor_lines(), *decoy_lines()]
    notes = {f"{line.kind}{number}": f"{line.text}\n" for number, line in enumerate(lines)}
    notes |= {f"file{number}": text for number, text in enumerate(files)}
    say(f"handing {len(lines):,} lines and {len(files):,} files to each scanner")
    started = time.process_time()
    ours = frozenset(name for name, text in notes.items() if is_blocked(text))
    rows = [_vendor_row("sevenfold", ours, notes, time.process_time() - started)]
    for peer in [] if folder is None else peers_in(folder):
        say(f"running {peer.name}")
        ran = run_peer(peer, notes)
        name = f"{peer.name} (cut)" if ran.is_cut_short else peer.name
        rows.append(_vendor_row(name, ran.blocked, notes, ran.cpu_seconds))
    return rows


def _vendor_row(name: str, blocked: frozenset[str], notes: Mapping[str, str], seconds: float) -> VendorRow:
    def count(kind: str, among: Iterable[str]) -> int:
        return sum(note.startswith(kind) for note in among)

    found = count("seen", blocked) + count("unseen", blocked)
    files = count("file", notes)
    return VendorRow(
        name=name,
        seen=count("seen", blocked) / count("seen", notes),
        unseen=count("unseen", blocked) / count("unseen", notes),
        precision=found / max(1, found + count("nothing", blocked)),
        markdown=count("file", blocked) / files if files else 0.0,
        cpu_seconds=seconds,
    )


def measure_speed() -> Speed:
    """On the pages of this project, repeated."""
    pages = sorted((Path(__file__).parent.parent / "docs").rglob("*.md"))
    text = "".join(path.read_text(encoding="utf-8") for path in pages)
    parts = [(text * 3)[at : at + 250_000] for at in range(0, 1_000_000, 250_000)]
    whole = min(sum(map(cpu_seconds, parts)) for _ in range(3))

    def search() -> float:
        started = time.process_time()
        for part in parts:
            list(find_random_tokens(part))
        return time.process_time() - started

    return Speed(megabyte_seconds=whole, ratio=whole / (whole - min(search() for _ in range(3))))


def compare(folder: Path, chance: random.Random) -> list[Row]:
    notes = notes_for_all(chance)
    say(f"handing {len(notes):,} notes to each scanner")
    started = time.process_time()
    ours = frozenset(name for name, text in notes.items() if is_blocked(text))
    rows = [_row("sevenfold", ours, notes, time.process_time() - started)]
    for peer in peers_in(folder):
        say(f"running {peer.name}")
        ran = run_peer(peer, notes)
        rows.append(_row(peer.name, ran.blocked, notes, ran.cpu_seconds))
    return rows


def notes_for_all(chance: random.Random) -> dict[str, str]:
    """Named by what they hold: plain, disguised, words, or nothing."""
    notes: dict[str, str] = {}
    for number, sample in enumerate(make_samples(seed=23)):
        kind = "plain" if sample.family in PROVIDERS else "words"
        notes[f"{kind}{number}"] = in_note(sample.value, chance)
        if kind == "plain" and "\n" not in sample.value:
            transform = TRANSFORMS[chance.choice(sorted(TRANSFORMS))]
            notes[f"disguised{number}"] = in_note(transform(sample.value, chance), chance)
    for number, text in enumerate((*VENDOR_EXAMPLES, *INNOCENT)):
        notes[f"nothing{number}"] = f"# Notes\n\n{text}\n"
    return notes


def _row(name: str, blocked: frozenset[str], notes: Mapping[str, str], seconds: float) -> Row:
    def share(kind: str) -> float:
        of_kind = {note for note in notes if note.startswith(kind)}
        return len(of_kind & blocked) / len(of_kind)

    false = sum(note.startswith("nothing") for note in blocked)
    return Row(
        name=name,
        plain=share("plain"),
        disguised=share("disguised"),
        words=share("words"),
        false_blocks=false,
        cpu_seconds=seconds,
    )


def say(text: str) -> None:
    print(f"· {text}", file=sys.stderr)


def show(report: Report) -> None:
    for title, shares in (("found", report.families), ("found disguised", report.transforms)):
        for share in shares:
            print(f"{title:16} {share.name:20} {share.ratio:6.1%} of {share.of:,}")
    for share in report.false_blocks:
        print(f"{'wrongly stopped':16} {share.name:20} {share.part} of {share.of:,}")
    out = report.canaries_out
    print(f"{'let through':16} {out.name:20} {out.part} of {out.of:,}")
    print(f"{'slowest 250 KB':16} {report.slowest_text:20} {report.slowest_seconds:.3f} s of processor time")
    print(
        f"1 MB of text     {report.speed.megabyte_seconds:.2f} s of processor time, "
        f"{report.speed.ratio:.2f} times what it takes without the search for unknown formats"
    )
    show_vendors(report.vendors)
    ours = report.peers[0] if report.peers else None
    for row in report.peers:
        times = row.cpu_seconds / ours.cpu_seconds if ours else 1.0
        print(
            f"{row.name:16} plain {row.plain:6.1%}  disguised {row.disguised:6.1%}  words {row.words:6.1%}"
            f"  false {row.false_blocks:3}  {row.cpu_seconds:6.2f} s ({times:.1f} times ours)"
        )


def show_vendors(rows: Sequence[VendorRow]) -> None:
    print(f"\n{len(SEEN)} vendors with rules, {len(UNSEEN)} without")
    print(f"{'scanner':16} {'seen':>7} {'unseen':>7} {'precision':>9} {'markdown':>8} {'seconds':>8}")
    for row in rows:
        print(
            f"{row.name:16} {row.seen:7.1%} {row.unseen:7.1%} {row.precision:9.1%} {row.markdown:8.2%} "
            f"{row.cpu_seconds:8.1f}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="Ends with 1 when a bar is missed: 98% of formats, 90% of each disguise, 1% wrongly "
        "stopped, no canary let through, half a second; 95% of the lines of vendors with rules, 70% of the "
        "others, 90% precision, 1.5% of markdown files, 1.3 times the time.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--data", type=Path, help="folder with memory_dirs and sessions: texts without secrets"
    )
    parser.add_argument("--peers", type=Path, help="folder with other scanners, each in a folder of its name")
    parser.add_argument(
        "--markdown", type=Path, action="append", default=[], help="folder with ordinary markdown files"
    )
    parser.add_argument("--most-files", type=int, default=5000, help="markdown files to read at most")
    parser.add_argument("--canaries", type=int, default=CANARIES, help="secrets to plant")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    arguments = parser.parse_args()
    files = files_under(arguments.markdown, arguments.most_files)
    report = run_report(arguments.data, arguments.peers, arguments.canaries, files)
    if arguments.json:
        print(json.dumps(asdict(report)))
    else:
        show(report)
    return 0 if report.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
