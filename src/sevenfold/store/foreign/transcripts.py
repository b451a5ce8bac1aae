"""Finding transcripts of other agents and reading them as a stream of entries.

In order: lines of a file, which agent wrote it, its entries with a count of what could not be read, where
transcripts are kept, and which calls appear in more than one file.
"""

from __future__ import annotations

import json
import os
import re
import stat
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal, Protocol, TypeAlias

from sevenfold.core.errors import InputError, NotRegular
from sevenfold.core.system import map_os_errors
from sevenfold.store.foreign.claude_code import SESSION_LINE_TYPES, ClaudeReader
from sevenfold.store.foreign.codex import CodexReader
from sevenfold.store.foreign.entries import (
    PLAIN_ROLES,
    CallId,
    ForeignAgent,
    ForeignEntry,
    JsonFields,
    PlainReader,
    UnknownLine,
    as_fields,
    get_name,
    get_object,
    get_text,
)
from sevenfold.store.foreign.own import RECORD_KINDS, OwnReader

# Neither a whole file nor an endless line is ever in memory.

MAX_FOREIGN_LINE_BYTES = 32 * 1024 * 1024
"""Pasted images make lines of a few MB. Ten times that is no line, and parsing it would take the memory of
everything else."""

BUFFER_BYTES = 1024 * 1024

LineFault: TypeAlias = Literal["not JSON", "no object", "too long", "half-written"]


@dataclass(frozen=True, slots=True)
class ForeignLine:
    fields: JsonFields
    """Empty where there is a fault."""
    length_bytes: int
    fault: LineFault | None = None
    offset: int = 0
    """Where it starts in the file."""


def scan_lines(path: Path, start: int = 0) -> Iterator[ForeignLine]:
    """Every line that is not blank, from the line that starts at `start` on.

    A last line without its end may be half-written: the agent is at work.
    """
    with map_os_errors(f"read {path}"), _opened(path) as file:
        offset = file.seek(start)
        while raw := file.readline(MAX_FOREIGN_LINE_BYTES + 1):
            length = len(raw)
            if length > MAX_FOREIGN_LINE_BYTES:
                length += _skip_rest(file, raw)
                yield ForeignLine({}, length, "too long", offset)
            elif raw.strip():
                yield _decode(raw, offset)
            offset += length


def scan_raw_lines(path: Path) -> Iterator[bytes]:
    """The same lines undecoded, without those that are too long."""
    with map_os_errors(f"read {path}"), _opened(path) as file:
        while raw := file.readline(MAX_FOREIGN_LINE_BYTES + 1):
            if len(raw) > MAX_FOREIGN_LINE_BYTES:
                _skip_rest(file, raw)
            else:
                yield raw


def _opened(path: Path) -> BinaryIO:
    # Non-blocking, so that a FIFO in its place is refused and not waited for.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise NotRegular(f"cannot read {path}: expected a plain file, not a folder, pipe or device")
    return os.fdopen(fd, "rb", BUFFER_BYTES)


END_BYTES = 4_096


def hash_ends(path: Path, offset: int) -> bytes:
    """What a file is and what it holds up to an offset, by its inode, its beginning and the bytes before the
    offset: it changes when the file is replaced, cut short or rewritten there."""
    with map_os_errors(f"read {path}"), _opened(path) as file:
        digest = blake2b(str(os.fstat(file.fileno()).st_ino).encode(), digest_size=16)
        digest.update(file.read(min(END_BYTES, offset)))
        file.seek(max(0, offset - END_BYTES))
        digest.update(file.read(min(END_BYTES, offset)))
        return digest.digest()


def _skip_rest(file: BinaryIO, raw: bytes) -> int:
    skipped = 0
    while raw and not raw.endswith(b"\n"):
        raw = file.readline(BUFFER_BYTES)
        skipped += len(raw)
    return skipped


def _decode(raw: bytes, offset: int) -> ForeignLine:
    try:
        # Anything but UTF-8 is replaced rather than refused: a report on the rest is worth more.
        value: object = json.loads(raw.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return ForeignLine({}, len(raw), "not JSON" if raw.endswith(b"\n") else "half-written", offset)
    fields = as_fields(value)
    return ForeignLine(fields, len(raw), None if isinstance(value, dict) else "no object", offset)


# The content says which agent wrote a file; names and folders only say where to look first.

LOOK_LINES = 40
"""An agent's own lines come first and are many; forty foreign ones in a row are another kind of file."""

ROLLOUT_TYPES = frozenset({"compacted", "event_msg", "response_item", "session_meta", "turn_context"})
CLAUDE_TYPES = frozenset({"assistant", "attachment", "progress", "system", "user"})


class ForeignReader(Protocol):
    def read(self, line: JsonFields) -> Iterator[ForeignEntry]:
        """What one line says."""
        ...


FOREIGN_READERS: Mapping[ForeignAgent, Callable[[], ForeignReader]] = {
    "claude-code": ClaudeReader,
    "codex": CodexReader,
    "messages": PlainReader,
    "sevenfold": OwnReader,
}


def detect_agent(path: Path) -> ForeignAgent | None:
    """The agent that wrote it; None where the beginning looks like no transcript that we know."""
    for line in islice(scan_lines(path), LOOK_LINES):
        agent = _find_agent(line.fields)
        if agent:
            return agent
    return None


def _find_agent(line: JsonFields) -> ForeignAgent | None:
    kind = get_name(line, "type")
    if "c" in line and "v" in line and get_name(line, "k") in RECORD_KINDS:
        return "sevenfold"
    if kind in ROLLOUT_TYPES and "payload" in line:
        return "codex"
    if _is_claude(kind, line):
        return "claude-code"
    if get_name(line, "role") in PLAIN_ROLES or get_name(get_object(line, "message"), "role") in PLAIN_ROLES:
        return "messages"
    if not kind and "instructions" in line and "timestamp" in line:
        return "codex"
    return None


def _is_claude(kind: str, line: JsonFields) -> bool:
    if kind in CLAUDE_TYPES:
        return "sessionId" in line or "session_id" in line or "parentUuid" in line
    return kind in SESSION_LINE_TYPES and ("sessionId" in line or "leafUuid" in line or "messageId" in line)


MAX_UNKNOWN_TYPES = 50
"""A file of random types would otherwise fill the report; the rest are counted together."""
OTHER_TYPES = "(other types)"


@dataclass(slots=True)
class LineTally:
    """What was met on the way. Grows while a transcript is read."""

    lines: int = 0
    length_bytes: int = 0
    unknown: Counter[str] = field(default_factory=Counter[str])
    """Lines that no reader knows, by type."""
    faults: Counter[LineFault] = field(default_factory=Counter[LineFault])
    """Lines that could not be read, by what is wrong with them."""


def read_transcript(
    path: Path, agent: ForeignAgent, tally: LineTally, on_bytes: Callable[[int], None] | None = None
) -> Iterator[ForeignEntry]:
    """Every entry in file order. Nothing in a line's content stops it; only the disk can."""
    reader = FOREIGN_READERS[agent]()
    for line in scan_lines(path):
        tally.lines += 1
        tally.length_bytes += line.length_bytes
        if on_bytes:
            on_bytes(line.length_bytes)
        if line.fault:
            tally.faults[line.fault] += 1
            continue
        for entry in reader.read(line.fields):
            if isinstance(entry, UnknownLine):
                is_room = entry.type in tally.unknown or len(tally.unknown) < MAX_UNKNOWN_TYPES
                tally.unknown[entry.type if is_room else OTHER_TYPES] += 1
            else:
                yield entry


_SUFFIX = ".jsonl"


@dataclass(frozen=True, slots=True)
class TranscriptFile:
    """A file that may be a transcript."""

    path: Path
    size_bytes: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class UnreadableFile:
    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class TranscriptSearch:
    """What a search came upon, newest first."""

    files: tuple[TranscriptFile, ...]
    unreadable: tuple[UnreadableFile, ...] = ()


def list_default_folders(environ: Mapping[str, str], user_home: Path) -> tuple[Path, ...]:
    """The folders in which Claude Code and Codex keep sessions, those that are there."""
    claude = environ.get("CLAUDE_CONFIG_DIR")
    codex = Path(environ.get("CODEX_HOME") or user_home / ".codex")
    homes = [Path(claude)] if claude else [user_home / ".claude", user_home / ".config" / "claude"]
    places = [*(home / "projects" for home in homes), codex / "sessions", codex / "archived_sessions"]
    return tuple(place for place in places if _may_be_folder(place))


def _may_be_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # who searches it reports why it cannot be read


def find_own_transcripts(home: Path) -> TranscriptSearch:
    """The transcripts of every project below Sevenfold's own home."""
    failures: list[UnreadableFile] = []
    paths = [
        path
        for project in _list_folder(home / "projects", failures)
        for path in _list_folder(project / "sessions", failures)
        if path.suffix == _SUFFIX and path.is_file()
    ]
    found = find_transcripts(paths)
    return TranscriptSearch(found.files, (*failures, *found.unreadable))


def read_own_project(path: Path) -> str:
    """The root of the project whose transcript this is, as its folder says; "" where it says nothing."""
    try:
        stored: object = json.loads((path.parent.parent / "project.json").read_bytes())
    except (OSError, ValueError):
        return ""
    return get_text(as_fields(stored), "root")


def merge_searches(*searches: TranscriptSearch) -> TranscriptSearch:
    """What several searches came upon, each file once."""
    found = {os.path.realpath(item.path): item for search in reversed(searches) for item in search.files}
    newest = sorted(found.values(), key=lambda item: (-item.modified_ns, str(item.path)))
    return TranscriptSearch(tuple(newest), tuple(item for search in searches for item in search.unreadable))


def _list_folder(path: Path, failures: list[UnreadableFile]) -> list[Path]:
    try:
        return sorted(path / name for name in os.listdir(path))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        failures.append(UnreadableFile(path, error.strerror or type(error).__name__))
        return []


def find_transcripts(paths: Iterable[Path]) -> TranscriptSearch:
    """Every file that is named, and every `.jsonl` below a folder that is named; each once."""
    found: dict[str, TranscriptFile] = {}
    unreadable: list[UnreadableFile] = []
    for path in paths:
        for item in _below(path):
            if isinstance(item, UnreadableFile):
                unreadable.append(item)
            else:
                found.setdefault(os.path.realpath(item.path), item)
    newest = sorted(found.values(), key=lambda item: (-item.modified_ns, str(item.path)))
    return TranscriptSearch(tuple(newest), tuple(unreadable))


def _below(path: Path) -> Iterator[TranscriptFile | UnreadableFile]:
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(
            f"{str(path)!r} does not exist; name a transcript, or a folder that holds some"
        ) from error
    except OSError as error:
        yield UnreadableFile(path, error.strerror or type(error).__name__)
        return
    if not is_folder:
        yield _measured(path)
        return
    failures: list[OSError] = []
    for folder, folders, names in os.walk(path, onerror=failures.append):
        folders.sort()
        for name in sorted(names):
            if name.endswith(_SUFFIX):
                yield _measured(Path(folder, name))
    for failure in failures:
        yield UnreadableFile(Path(str(failure.filename)), failure.strerror or type(failure).__name__)


def _measured(path: Path) -> TranscriptFile | UnreadableFile:
    try:
        about = path.stat()
    except OSError as error:
        return UnreadableFile(path, error.strerror or type(error).__name__)
    return TranscriptFile(path, about.st_size, about.st_mtime_ns)


# A resumed or forked session begins with a copy of its original, and a parent's file repeats the calls of its
# subagents. Each call was billed once, so one file must own it. Ids are found in the bytes, without parsing.

_ID = re.compile(rb'"id": ?"((?!toolu_)[^"\\]{6,100})"')
_MIRROR = b'"agent_progress"'


@dataclass(frozen=True, slots=True)
class FileCalls:
    """The calls that a file may hold, as digests; some are no calls, which does no harm."""

    own: array[int]
    mirrored: array[int]
    """Of sub-agents, whose own files go first."""


def hash_call_id(call: CallId | bytes) -> int:
    """A call's id in eight bytes, the same in every process."""
    raw = call if isinstance(call, bytes) else call.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(raw, digest_size=8).digest(), "big")


def scan_calls(path: Path, on_bytes: Callable[[int], None] | None = None) -> FileCalls:
    """The ids beside a usage, in one pass over the bytes."""
    own: set[int] = set()
    mirrored: set[int] = set()
    for raw in scan_raw_lines(path):
        if on_bytes:
            on_bytes(len(raw))
        if b'"usage"' in raw:
            found = mirrored if _MIRROR in raw else own
            found.update(hash_call_id(item) for item in _ID.findall(raw))
    return FileCalls(array("Q", sorted(own)), array("Q", sorted(mirrored - own)))


def choose_owners(files: Sequence[FileCalls]) -> Mapping[int, frozenset[int]]:
    """For each file, by its place in the list, the calls that belong to another one.

    The first file that holds a call owns it; a file that repeats it owns only what no file holds itself.
    """
    owner: dict[int, int] = {}
    for calls in ([item.own for item in files], [item.mirrored for item in files]):
        for place, ids in enumerate(calls):
            for call in ids:
                owner.setdefault(call, place)
    foreign = {
        place: frozenset(call for ids in (item.own, item.mirrored) for call in ids if owner[call] != place)
        for place, item in enumerate(files)
    }
    return {place: calls for place, calls in foreign.items() if calls}
