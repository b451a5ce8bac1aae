"""Settings from their files: which files there are, and how far each is trusted (docs/settings.md).

Every file is somebody else's: capped in size, plain, UTF-8. The one that comes with the repository may in
addition not lead out of it, and so may a project-local one unless git's index shows that it is not tracked.
An archive can bring an index of its own: an agent asks a person too, before it trusts that file.

What a repository's file says counts once a person has agreed to it, apart from the few settings in `UNASKED`.
The answer is looked up here, so that no caller has to remember to.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Self

from sevenfold.core import events
from sevenfold.core.errors import SettingsError, SevenfoldError
from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.settings import HOME_FOLDER, PlaceSettings, Settings, SettingSource, SettingsSection
from sevenfold.core.settings.merge import RawSettings, SettingsCollector, merge_settings
from sevenfold.store.files.folder import Folder
from sevenfold.store.project.git import find_project_root, read_tracking
from sevenfold.store.project.project import CONTROL_FOLDER, locate_project, open_control
from sevenfold.store.project.trust import Consent, TrustStore

MANAGED_SETTINGS_FILE = Path("/etc/sevenfold/settings.toml")
"""An operator's policy. Never taken from the environment, which a user could set."""

MAX_SETTINGS_BYTES = 256 * 1024
"""A thousand times what a person writes; parsing more is work for somebody who means harm."""

MAX_LINE_DOTS = 64
"""Our deepest key has two. The parser's memory grows with the square of a key's parts: 256 KB of `a.a.a…` on
one line would take all the memory there is."""

USER_SETTINGS_FILE = "settings.toml"
"""In the home folder."""
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
    waiting: tuple[events.SettingRefused, ...]
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


@dataclass(frozen=True, slots=True)
class _ReadFile:
    """A settings file as it was when it was read."""

    file: SettingsFile
    content: bytes | None = None
    """None: there is no such file, or it cannot be read."""
    tables: Mapping[str, object] = field(default_factory=dict[str, object])
    error: SettingsError | None = None


@dataclass(slots=True, kw_only=True)
class SettingsFiles:
    """The settings files of one checkout, each read once: what a person agrees to is what counts later.

    Answers are looked up when they are asked for, in the control folder of the project, and kept there.
    """

    root: Path | None
    """The top of the checkout; None: no project."""
    home: Path
    user_home: Path
    environ: Mapping[str, str]
    emit: Emit
    _given: RawSettings
    _files: tuple[_ReadFile, ...]
    _project_root: Path | None = None

    @classmethod
    def read(
        cls,
        root: Path | None,
        *,
        environ: Mapping[str, str],
        arguments: Mapping[str, Mapping[str, object]] | None = None,
        managed_file: Path = MANAGED_SETTINGS_FILE,
        emit: Emit = ignore_event,
    ) -> Self:
        """Blocks on the disk. What is wrong with a file is told by `resolve`."""
        user_home = find_user_home(environ)
        given = RawSettings(source=SettingSource.ARGUMENT, where="", tables=arguments or {})
        managed = _read_file(SettingsFile(source=SettingSource.MANAGED, path=managed_file))
        policy = RawSettings(source=SettingSource.MANAGED, where=str(managed_file), tables=managed.tables)
        home = _find_home([given, policy], environ, user_home)
        return cls(
            root=root,
            home=home,
            user_home=user_home,
            environ=environ,
            emit=emit,
            _given=given,
            _files=(managed, *map(_read_file, _own_files(home, root))),
        )

    @property
    def project_root(self) -> Path:
        """The root that names the project, the same for all its worktrees. Looked up once."""
        if self._project_root is None:
            assert self.root is not None
            self._project_root = find_project_root(self.root, emit=self.emit)
        return self._project_root

    def resolve(
        self, sections: Iterable[type[SettingsSection]], *, trusts_local: bool = True, is_part: bool = False
    ) -> Settings:
        """The settings that these files, the environment and the arguments add up to; see `read_settings`."""
        known, problems = tuple(sections), list[str]()
        refused: list[events.SettingRefused] = []
        drafts = [self._given]
        for item in self._files:
            file = item.file if trusts_local else self._without_trust(item.file)
            if item.error is None:
                drafts += [self._draft(file, item)] if item.content is not None else []
            elif file.source is SettingSource.COMMITTED:
                reason = str(item.error).removeprefix(f"{file.path}: ")
                refused.append(events.SettingRefused(str(file), "(the whole file)", reason))
            else:
                problems.append(str(item.error))
        if is_part:
            words = {section.SECTION for section in known}
            drafts = [
                replace(item, tables={word: item.tables[word] for word in words & {*item.tables}})
                for item in drafts
            ]
        return merge_settings(
            known,
            drafts,
            environ=self.environ,
            user_home=self.user_home,
            problems=problems,
            refused=refused,
        )

    def proposals(self, sections: Iterable[type[SettingsSection]]) -> tuple[Proposal, ...]:
        """The files of the repository that set anything, with what was answered to each.

        Files that cannot be read are left out: `resolve` tells of them.
        """
        known, found = tuple(sections), list[Proposal]()
        for item in self._files:
            if not item.file.consent_key or item.content is None or item.error is not None:
                continue
            collector = SettingsCollector(sections=known)
            with suppress(SettingsError):
                collector.collect(
                    RawSettings(
                        source=item.file.source,
                        where=str(item.file),
                        tables=item.tables,
                        advice=item.file.advice,
                    )
                )
                found.append(
                    Proposal(
                        file=item.file,
                        content=item.content,
                        consent=self._consent(item.file, item.content),
                        free=tuple(dict.fromkeys(claim.slot.key for claim in collector.values)),
                        waiting=tuple(collector.waiting),
                    )
                )
        return tuple(found)

    def find_consent(self, name: str, content: bytes) -> Consent:
        """What was answered about a file as it is. Looks it up, and makes nothing."""
        if self.root is None:
            return "unasked"
        try:
            with Folder.open(locate_project(self.home, self.project_root) / CONTROL_FOLDER) as control:
                return TrustStore(control).find(name, content)
        except SevenfoldError:
            return "unasked"  # no answer was ever kept for this project, or none can be read

    def keep_consent(self, name: str, content: bytes, *, is_agreed: bool) -> None:
        """Write down what a person has answered; it holds until the file changes."""
        with open_control(self.home, self.project_root) as control:
            TrustStore(control).keep(name, content, is_agreed=is_agreed)

    @property
    def local_content(self) -> bytes | None:
        """What the project-local file holds; None where git shows that it is not the user's."""
        found = (item for item in self._files if item.file.source is SettingSource.LOCAL)
        return next((item.content for item in found), None)

    @property
    def local_consent(self) -> Consent:
        """What was answered about the project-local file as it was read."""
        content = self.local_content
        # One that appears meanwhile does not count unseen.
        return "unasked" if content is None else self.find_consent(LOCAL_SETTINGS_FILE, content)

    def _without_trust(self, file: SettingsFile) -> SettingsFile:
        if file.source is not SettingSource.LOCAL:
            return file
        return SettingsFile(
            source=SettingSource.COMMITTED,
            path=file.path,
            confined_to=self.root,
            remark="nobody has agreed to it",
            advice=f"look at it, then `sevenfold settings --trust {LOCAL_SETTINGS_FILE}` agrees to it; "
            f"or use the user file, {self.home / USER_SETTINGS_FILE}",
        )

    def _draft(self, file: SettingsFile, item: _ReadFile) -> RawSettings:
        is_committed = file.source is SettingSource.COMMITTED
        consent = self._consent(file, item.content or b"") if is_committed else "unasked"
        return RawSettings(
            source=file.source,
            where=str(file),
            tables=item.tables,
            advice=file.advice,
            is_agreed=consent == "agreed",
            waits_because=_say_waiting(file, consent),
        )

    def _consent(self, file: SettingsFile, content: bytes) -> Consent:
        return self.find_consent(file.consent_key, content) if file.consent_key else "unasked"


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
    files = SettingsFiles.read(root, environ=environ, arguments=arguments, managed_file=managed_file)
    settings = files.resolve(sections, trusts_local=trusts_local, is_part=is_part)
    for refusal in settings.refused:
        emit(refusal)
    return settings


def find_user_home(environ: Mapping[str, str]) -> Path:
    """The folder that `~` stands for."""
    home = environ.get("HOME", "")
    if home and not Path(home).is_absolute():
        raise SettingsError(f"environment: HOME = {home!r}: expected an absolute path")
    try:
        # Not `Path.home`, for which an empty HOME means the root of the file system.
        return Path(home) if home else Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError as error:
        raise SettingsError("no home folder is known for this user; set HOME") from error


def find_checkout(start: Path) -> Path:
    """The top of the checkout that `start` lies in, each worktree its own; `start` where there is none."""
    here = Path(os.path.realpath(start))
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)


def _own_files(home: Path, root: Path | None) -> list[SettingsFile]:
    user = SettingsFile(source=SettingSource.USER, path=home / USER_SETTINGS_FILE)
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
        _local_file(local, root, user.path)
        if os.path.exists(local)
        else SettingsFile(source=SettingSource.LOCAL, path=local),
    ]


def _is_same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


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


def _say_waiting(file: SettingsFile, consent: Consent) -> str:
    said = "you have refused this file" if consent == "refused" else "nobody has agreed to this file"
    return f"{said}; `sevenfold settings --trust` agrees to it" if file.consent_key else said


def _read_file(file: SettingsFile) -> _ReadFile:
    content = None
    try:
        content = _read_content(file)
        return _ReadFile(file, content, {} if content is None else _parse(file.path, content))
    except SettingsError as error:
        return _ReadFile(file, content, error=error)


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
