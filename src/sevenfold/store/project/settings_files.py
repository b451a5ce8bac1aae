"""Settings from their files: which files there are, and how far each is trusted (docs/settings.md).

Every file is somebody else's: capped in size, plain, UTF-8. The one that comes with the repository may in
addition not lead out of it, and so may a project-local one unless git's index shows that it is not tracked.
An archive can bring an index of its own: an agent asks a person too, before it trusts that file.

What a repository's file says counts once a person has agreed to it, apart from the few settings in `UNASKED`.
The answer is looked up here, so that no caller has to remember to.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path

from sevenfold.core.errors import SettingsError, SevenfoldError
from sevenfold.core.events import Emit, SettingRefused, ignore_event
from sevenfold.core.settings import Settings, SettingSource, SettingsSection
from sevenfold.core.settings.merge import RawSettings, SettingsCollector, merge_settings
from sevenfold.core.settings.sections import HOME_FOLDER, PlaceSettings
from sevenfold.store.files.folder import Folder
from sevenfold.store.project.git import read_tracking
from sevenfold.store.project.project import find_control, open_project
from sevenfold.store.project.trust import Consent, TrustStore

MANAGED_SETTINGS_FILE = Path("/etc/sevenfold/settings.toml")
"""An operator's policy. Never taken from the environment, which a user could set."""

MAX_SETTINGS_BYTES = 256 * 1024
"""A thousand times what a person writes; parsing more is work for somebody who means harm."""

MAX_LINE_DOTS = 64
"""Our deepest key has two. The parser's memory grows with the square of a key's parts: 256 KB of `a.a.a…` on
one line would take all the memory there is."""

COMMITTED_SETTINGS_FILE = ".sevenfold/settings.toml"
LOCAL_SETTINGS_FILE = ".sevenfold/settings.local.toml"

TRACKED_LOCAL = f"{LOCAL_SETTINGS_FILE} (the repository's)"
"""What an answer about a project-local file is kept under where git does not show that it is the user's. It
allows less than an agreement to `LOCAL`, and must not turn into one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A settings file that came with a repository: what it wants, and what a person has said to that."""

    file: SettingsFile
    content: bytes
    consent: Consent
    free: tuple[str, ...]
    """Settings that count without an agreement."""
    waiting: tuple[SettingRefused, ...]
    """Settings that count only with one."""

    @property
    def keys(self) -> str:
        """The settings that need an agreement, for a message."""
        return ", ".join(item.key for item in self.waiting)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsFile:
    """A file that settings are looked for in."""

    source: SettingSource
    path: Path
    confined_to: Path | None = None
    """A folder that it may not lead out of."""
    remark: str = ""
    advice: str = ""
    """Where to put what it may not set."""
    consent_key: str = ""
    """What an answer about it is kept under; empty: what it says needs no agreement, or cannot get one."""

    def __str__(self) -> str:
        return f"{self.path} ({self.remark})" if self.remark else str(self.path)


def read_settings(
    sections: Iterable[type[SettingsSection]],
    *,
    root: Path | None,
    environ: Mapping[str, str],
    arguments: Mapping[str, Mapping[str, object]] | None = None,
    managed_file: Path = MANAGED_SETTINGS_FILE,
    trusts_local: bool = True,
    is_part: bool = False,
    emit: Emit = ignore_event,
) -> Settings:
    """The settings of the project checked out at `root` (None: no project), from all sources.

    Everything that cannot be used is in one `SettingsError`, but what a committed file says: that is refused,
    and the rest of it counts. What was refused is told to `emit` too. Without `trusts_local` the
    project-local file has no more rights than a committed one, and not even an agreement to it. `is_part`
    says that there are sections beside these, which are passed over.
    """
    known, user_home = tuple(sections), find_user_home(environ)
    faults = _Faults()
    managed = _read_drafts([SettingsFile(source=SettingSource.MANAGED, path=managed_file)], faults)
    drafts = [RawSettings(source=SettingSource.ARGUMENT, where="", tables=arguments or {}), *managed]
    home = _find_home(drafts, environ, user_home)
    answers = _Answers(home, root)
    drafts += _read_drafts(_own_files(home, root, trusts_local=trusts_local), faults, answers)
    if is_part:
        words = {section.SECTION for section in known}
        drafts = [
            replace(item, tables={word: item.tables[word] for word in words & {*item.tables}})
            for item in drafts
        ]
    settings = merge_settings(
        known,
        drafts,
        environ=environ,
        user_home=user_home,
        problems=faults.problems,
        refused=faults.refused,
    )
    for refusal in settings.refused:
        emit(refusal)
    return settings


def read_proposals(
    sections: Iterable[type[SettingsSection]],
    *,
    root: Path,
    environ: Mapping[str, str],
    arguments: Mapping[str, Mapping[str, object]] | None = None,
    managed_file: Path = MANAGED_SETTINGS_FILE,
) -> tuple[Proposal, ...]:
    """The files of the repository at `root` that set anything, with what was answered to each.

    Files that cannot be read are left out: `read_settings` tells of them.
    """
    known, faults = tuple(sections), _Faults()
    managed = _read_drafts([SettingsFile(source=SettingSource.MANAGED, path=managed_file)], faults)
    given = RawSettings(source=SettingSource.ARGUMENT, where="", tables=arguments or {})
    home = _find_home([given, *managed], environ, find_user_home(environ))
    found: list[Proposal] = []
    for file in _own_files(home, root, trusts_local=True):
        with suppress(SettingsError):
            content = _read_content(file) if file.consent_key else None
            if content is None:
                continue
            hearing = SettingsCollector(sections=known)
            hearing.collect(
                RawSettings(
                    source=file.source, where=str(file), tables=_parse(file.path, content), advice=file.advice
                )
            )
            free = tuple(dict.fromkeys(claim.slot.key for claim in hearing.values))
            consent = _Answers(home, root).find(file, content)
            found.append(
                Proposal(
                    file=file, content=content, consent=consent, free=free, waiting=tuple(hearing.waiting)
                )
            )
    return tuple(found)


def keep_consent(
    proposal: Proposal, settings: Settings, *, root: Path, user_home: Path, is_agreed: bool
) -> None:
    """Write down what a person has answered; it holds until the file changes."""
    with open_project(root, settings, user_home=user_home) as project:
        trust = TrustStore(project.control)
        trust.keep(proposal.file.consent_key, proposal.content, is_agreed=is_agreed)


def find_user_home(environ: Mapping[str, str]) -> Path:
    """The folder that `~` stands for."""
    home = environ.get("HOME", "")
    if home and not Path(home).is_absolute():
        raise SettingsError(f"environment: HOME = {home!r}: expected an absolute path")
    try:
        return Path(home) if home else Path.home()
    except RuntimeError as error:
        raise SettingsError("no home folder is known for this user; set HOME") from error


def find_checkout(start: Path) -> Path:
    """The top of the checkout that `start` lies in, each worktree its own; `start` where there is none."""
    here = Path(os.path.realpath(start))
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)


def read_local_settings(root: Path) -> bytes | None:
    """What the project-local file holds, where git does not show that it is somebody else's; else None."""
    file = _local_file(root / LOCAL_SETTINGS_FILE, root, Path())
    return _read_content(file) if file.source is SettingSource.LOCAL else None


def _own_files(home: Path, root: Path | None, *, trusts_local: bool) -> list[SettingsFile]:
    user = SettingsFile(source=SettingSource.USER, path=home / "settings.toml")
    if root is None:
        return [user]
    committed, local = root / COMMITTED_SETTINGS_FILE, root / LOCAL_SETTINGS_FILE
    return [
        # In one's own home folder the two are one file, and it is the user's.
        *(
            []
            if _is_same(committed, user.path)
            else [
                SettingsFile(
                    source=SettingSource.COMMITTED,
                    path=committed,
                    confined_to=root,
                    consent_key=COMMITTED_SETTINGS_FILE,
                )
            ]
        ),
        user,
        _found_local(local, root, user.path, trusts_local=trusts_local)
        if os.path.exists(local)
        else SettingsFile(source=SettingSource.LOCAL, path=local),
    ]


def _is_same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _found_local(path: Path, root: Path, user_file: Path, *, trusts_local: bool) -> SettingsFile:
    file = _local_file(path, root, user_file)
    if trusts_local or file.source is not SettingSource.LOCAL:
        return file
    return SettingsFile(
        source=SettingSource.COMMITTED,
        path=path,
        confined_to=root,
        remark="nobody has agreed to it",
        advice=f"look at it, then `sevenfold settings --trust {LOCAL_SETTINGS_FILE}` agrees to it; "
        f"or use the user file, {user_file}",
    )


def _local_file(path: Path, root: Path, user_file: Path) -> SettingsFile:
    """A repository or an archive can carry a file of this name too, and would be trusted with paths by it."""
    names = {LOCAL_SETTINGS_FILE, LOCAL_SETTINGS_FILE.partition("/")[0]}
    real = Path(os.path.realpath(path))
    if real.is_relative_to(os.path.realpath(root)):
        names.add(real.relative_to(os.path.realpath(root)).as_posix())
    answer = read_tracking(root, frozenset(names))
    if answer == "untracked":
        return SettingsFile(source=SettingSource.LOCAL, path=path)
    if answer == "tracked":
        return SettingsFile(
            source=SettingSource.COMMITTED,
            path=path,
            confined_to=root,
            remark="tracked by git",
            consent_key=TRACKED_LOCAL,
        )
    return SettingsFile(
        source=SettingSource.COMMITTED,
        path=path,
        confined_to=root,
        remark="no readable git index shows that it is yours",
        advice=f"use the user file, {user_file}",
        consent_key=TRACKED_LOCAL,
    )


def _find_home(drafts: Iterable[RawSettings], environ: Mapping[str, str], user_home: Path) -> Path:
    """Home decides where the user file is, so only sources that do not depend on it can set it."""
    section = PlaceSettings.SECTION
    places = [
        RawSettings(source=draft.source, where=draft.where, tables={section: draft.tables[section]})
        for draft in drafts
        if section in draft.tables
    ]
    try:
        settings = merge_settings([PlaceSettings], places, environ=environ, user_home=user_home)
    except SettingsError:
        return user_home / HOME_FOLDER  # said again, with everything else, once all sources are heard
    return settings.of(PlaceSettings).home_folder(user_home)


@dataclass(slots=True)
class _Faults:
    """What was wrong with files as a whole."""

    problems: list[str] = field(default_factory=list[str])
    refused: list[SettingRefused] = field(default_factory=list[SettingRefused])

    def add(self, file: SettingsFile, error: SettingsError) -> None:
        if file.source is SettingSource.COMMITTED:
            reason = str(error).removeprefix(f"{file.path}: ")
            self.refused.append(SettingRefused(str(file), "(the whole file)", reason))
        else:
            self.problems.append(str(error))


@dataclass(frozen=True, slots=True)
class _Answers:
    """What was answered about the files of one checkout. Looks it up, and makes nothing."""

    home: Path
    root: Path | None

    def find(self, file: SettingsFile, content: bytes) -> Consent:
        if self.root is None or not file.consent_key:
            return "unasked"
        try:
            with Folder.open(find_control(self.home, self.root)) as control:
                return TrustStore(control).find(file.consent_key, content)
        except SevenfoldError:
            return "unasked"  # no answer was ever kept for this project, or none can be read

    def draft(self, file: SettingsFile, content: bytes) -> RawSettings:
        consent = self.find(file, content) if file.source is SettingSource.COMMITTED else "unasked"
        tables = _parse(file.path, content)
        return RawSettings(
            source=file.source,
            where=str(file),
            tables=tables,
            advice=file.advice,
            is_agreed=consent == "agreed",
            waits_because=_say_waiting(file, consent),
        )


def _say_waiting(file: SettingsFile, consent: Consent) -> str:
    said = "you have refused this file" if consent == "refused" else "nobody has agreed to this file"
    return f"{said}; `sevenfold settings --trust` agrees to it" if file.consent_key else said


def _read_drafts(
    files: Iterable[SettingsFile], faults: _Faults, answers: _Answers | None = None
) -> list[RawSettings]:
    answers = answers or _Answers(Path(), None)
    drafts: list[RawSettings] = []
    for file in files:
        try:
            content = _read_content(file)
            if content is not None:
                drafts.append(answers.draft(file, content))
        except SettingsError as error:
            faults.add(file, error)
    return drafts


def _read_content(file: SettingsFile) -> bytes | None:
    try:
        real = Path(os.path.realpath(file.path, strict=True))
        if file.confined_to and not real.is_relative_to(os.path.realpath(file.confined_to)):
            raise SettingsError(
                f"{file.path}: leads out of the project, to {real}; put the file itself there"
            )
        # Non-blocking, so that a FIFO in its place cannot hold us up.
        fd = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise SettingsError(f"{file.path}: cannot be read: {error.strerror}") from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise SettingsError(f"{file.path}: expected a plain file, not a folder, pipe or device")
        content = _read_up_to(fd, MAX_SETTINGS_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"{file.path}: cannot be read: {error.strerror}") from error
    finally:
        os.close(fd)
    if len(content) > MAX_SETTINGS_BYTES:
        raise SettingsError(
            f"{file.path}: larger than the {MAX_SETTINGS_BYTES:,} bytes that settings may have"
        )
    return content


def _read_up_to(fd: int, size: int) -> bytes:
    content = b""
    while len(content) < size and (more := os.read(fd, size - len(content))):
        content += more
    return content


def _parse(path: Path, content: bytes) -> dict[str, object]:
    import tomllib

    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.count(b".") > MAX_LINE_DOTS:
            raise SettingsError(
                f"{path}: line {number} has more than {MAX_LINE_DOTS} dots; no key is that deep"
            )
    try:
        # Decimal keeps a price as it was typed.
        return tomllib.loads(content.decode("utf-8"), parse_float=Decimal)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{path}: line {line} is not UTF-8; save the file as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        last = content.count(b"\n") + 1
        message = str(error).replace("at end of document", f"at line {last}, the end of the file")
        raise SettingsError(f"{path}: not TOML: {message}") from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path}: not TOML that can be read: {type(error).__name__}: {error}") from error
