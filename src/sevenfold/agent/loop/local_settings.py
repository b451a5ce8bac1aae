"""Settings files of a project, and the consent they need before an agent applies them.

The project-local file can name commands to run, allow tools and redirect the conversation. An archive can
contain such a file, together with a git index that does not list it. The committed file can do none of that,
but it can switch off what protects the user or keeps costs low.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sevenfold.agent.mcp.servers import Confirm
from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import SettingsError
from sevenfold.core.settings import Settings
from sevenfold.core.text.truncation import escape_controls
from sevenfold.session.settings import SETTINGS_SECTIONS
from sevenfold.store.files.offload import run_blocking
from sevenfold.store.project.project import Project, has_project, open_project
from sevenfold.store.project.settings_files import (
    LOCAL_SETTINGS_FILE,
    Proposal,
    find_checkout,
    find_user_home,
    keep_consent,
    read_local_settings,
    read_proposals,
    read_settings,
)
from sevenfold.store.project.trust import TrustStore


@dataclass(frozen=True, slots=True)
class LocalSettingsFile:
    """The one of the project that a path lies in."""

    project: Path
    environ: Mapping[str, str]
    clock: Clock
    settings: Mapping[str, Mapping[str, object]] | None = None
    """Given in the call, by section."""

    async def is_agreed(self, confirm: Confirm) -> bool:
        """Whether it may count as the user's own. Asks where nobody has agreed to it as it is now."""
        root = await run_blocking(lambda: find_checkout(self.project))
        try:
            content = await run_blocking(lambda: read_local_settings(root))
        except SettingsError:
            return False  # reading the settings reports what is wrong with it
        if content is None:
            return False  # so that one which appears meanwhile does not count unseen
        if await run_blocking(lambda: self._is_trusted(content)):
            return True
        if not await confirm(_question(root / LOCAL_SETTINGS_FILE, content)):
            return False
        await run_blocking(lambda: self._trust(content))
        return True

    async def ask_proposals(self, confirm: Confirm) -> None:
        """Ask about the files that came with the repository, where no answer to them as they are was kept.

        Nothing is kept where nobody could be asked; `read_settings` goes by what was.
        """
        root = await run_blocking(lambda: find_checkout(self.project))
        for proposal in await run_blocking(lambda: self._proposals(root)):
            if not proposal.waiting or proposal.consent != "unasked":
                continue
            answer = await confirm(_ask_proposal(proposal))
            if answer is not None:
                await run_blocking(
                    lambda proposal=proposal, answer=answer: self._keep(root, proposal, answer)
                )

    def _proposals(self, root: Path) -> tuple[Proposal, ...]:
        return read_proposals(SETTINGS_SECTIONS, root=root, environ=self.environ, arguments=self.settings)

    def _keep(self, root: Path, proposal: Proposal, answer: bool) -> None:
        user_home = find_user_home(self.environ)
        keep_consent(proposal, self._read(), root=root, user_home=user_home, is_agreed=answer)

    def is_trusted(self) -> bool:
        """Whether somebody has agreed to it as it is. Asks nobody, makes nothing; blocks on the disk."""
        try:
            content = read_local_settings(find_checkout(self.project))
        except SettingsError:
            return False
        return content is not None and self._is_trusted(content)

    def _is_trusted(self, content: bytes) -> bool:
        if not has_project(self.project, self._read(), user_home=find_user_home(self.environ)):
            return False
        with self._open() as project:
            return TrustStore(project.control).is_trusted(LOCAL_SETTINGS_FILE, content)

    def _trust(self, content: bytes) -> None:
        with self._open() as project:
            TrustStore(project.control).trust(LOCAL_SETTINGS_FILE, content)

    def _open(self) -> Project:
        user_home = find_user_home(self.environ)
        return open_project(self.project, self._read(), user_home=user_home, clock=self.clock)

    def _read(self) -> Settings:
        """Without a word of the file itself, which must not say where agreements lie."""
        return read_settings(
            SETTINGS_SECTIONS,
            root=find_checkout(self.project),
            environ=self.environ,
            arguments=self.settings,
            trusts_local=False,
        )


def read_trusted_settings(project: Path, environ: Mapping[str, str]) -> Settings:
    """The settings that an agent of this project obeys: the project-local file's if somebody has agreed."""
    is_trusted = LocalSettingsFile(project, environ, SystemClock()).is_trusted()
    return read_settings(
        SETTINGS_SECTIONS, root=find_checkout(project), environ=environ, trusts_local=is_trusted
    )


def _ask_proposal(proposal: Proposal) -> str:
    text = escape_controls(proposal.content.decode("utf-8", "backslashreplace")).rstrip("\n")
    return (
        f"{proposal.file.path} came with the repository and says:\n{text}\n"
        f"These can weaken your protection or raise your costs: {proposal.keys}\nLet them count?"
    )


def _question(path: Path, content: bytes) -> str:
    text = escape_controls(content.decode("utf-8", "backslashreplace")).rstrip("\n")
    lines = text.count("\n") + 1
    # At the end, where it is seen however much of the file has run off the screen.
    return f"{path} says:\n{text}\nLet all {lines} lines of it count as settings of your own?"
