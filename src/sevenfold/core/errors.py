"""Every error a caller can meet.

SevenfoldError
├── InputError                  what was handed in cannot be used
│   ├── WireError               JSON that is no message, block or usage
│   ├── ScriptError             a script or recording that the simulator cannot play
│   ├── SettingsError           a setting with a value that is not allowed
│   ├── ProviderMissing         no model to talk to is named anywhere
│   ├── ClientClosed            an attached client that is closed is used
│   ├── WindowFull              no room for new input, and nothing may make some by itself
│   └── KeyRefused              a name that could leave its folder, or be mistaken for another
├── StoreError                  the disk did not do what was asked; nothing was acknowledged
│   ├── DiskFull                no space or quota left
│   ├── AccessDenied            no permission, or a read-only file system
│   ├── DiskFault               the device failed, or a write or fsync did
│   ├── FileMissing             the file or folder is not there
│   ├── FileExists              something is there already
│   ├── NotRegular              a link, FIFO, device or folder where a plain file was expected
│   ├── FileDamaged             content fails its check
│   ├── DatabaseFailed          the team server's database failed or cannot be reached
│   └── WriterBroken            an earlier fsync failed; reopen before writing again
├── GitError                    git is missing, failed, or took too long
├── MemoryConflict              a memory is not as its writer saw it; nothing was changed
├── ProjectError                a project's folder belongs to another project
├── LockError
│   ├── LockBusy                somebody else holds it
│   ├── SessionBusy             the session is open elsewhere
│   └── LeaseLost               the lease was taken over; nothing may be published with it
├── MailError
│   ├── AddressUnknown          nobody is there by that name
│   ├── MailboxFull             the recipient's quota is used up
│   ├── MessageTooLarge         one message is over its own limit
│   └── PeerRefused             the other end is not the same user's, or cannot be told
├── TeamError                   the team's server did not do what was asked
│   ├── TeamLeft                the project has left it meanwhile, or joined another
│   ├── TeamOffline             no answer came, or none is possible now: it may pass
│   └── TeamRefused             it does not want to, and will not until something changes
├── AgentError                  an agent could not be started
│   ├── AgentRefused            too many at once, or from inside a fork
│   └── WorktreeError           git did not make, show or remove a worktree
├── ProviderError               a model gave no answer that can be used
│   ├── PromptTooLong           the prompt is over what the model takes
│   ├── RateLimited             too many requests or tokens, or a spending limit
│   ├── Overloaded              the provider failed or was too busy: its fault, and it may pass
│   ├── SignInRefused           no key, a wrong one, or one without the right
│   ├── ProviderRefused         the request itself was refused
│   │   └── ThinkingRefused     for thinking in it that is not as, or not where, it was given
│   ├── ReplyBroken             an answer began, and cannot be used
│   ├── ProviderUnreachable     no answer came at all
│   └── SpendRefused            background work may not spend now; no call was made
├── ProxyError                  the proxy cannot be started or stopped
├── ResidentUnavailable         the resident process gave no answer
├── LoopStopped                 the model made the same failing call again and again
├── CompactionError             a view cannot be cut down now
│   ├── CompactionBusy          another one is under way, or has just changed the view
│   └── CompactionStopped       automatic ones have helped nothing
└── SimulatorError              a simulator was not used as its script says
    ├── CallUnexpected          a request that no step of the script answers
    └── StepsUnused             steps of the script that nobody asked for
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta


_INDEX_NAMES = {"prometheus_client": "prometheus-client", "re2": "google-re2", "yaml": "PyYAML"}
"""Modules that the package index knows under another name."""


def describe_missing(what: str, modules: Sequence[str], *extras: str) -> str:
    """What needs which packages, and the command that installs them: one line, the same everywhere."""
    from sevenfold.core.extras import render_install_command

    names = [_INDEX_NAMES.get(module, module) for module in modules]
    listed = " and ".join((", ".join(names[:-1]), names[-1]) if len(names) > 1 else names)
    return f"{what} needs {listed}; run: {render_install_command(*extras)}"


class SevenfoldError(Exception):
    """Anything this package raises on purpose."""


class InputError(SevenfoldError):
    """What was handed in cannot be used."""


class ClientClosed(InputError, AttributeError):
    """An attached client that is closed is used. `hasattr` takes it for an attribute that is not there."""


class WireError(InputError):
    """JSON that is no message, block or usage of the Messages API."""


class ScriptError(InputError):
    """A script or a recording that the simulator cannot play; the message names file, step and field."""


class SettingsError(InputError):
    """A setting with a value that is not allowed; the message names source, key, value and what is."""


class ProviderMissing(InputError):
    """No model to talk to: no key, address or file is named; the message says what was looked for."""


class WindowFull(InputError):
    """No room is left for new input, and automatic compaction is off."""

    def __init__(self, message: str, *, tokens: int = 0, limit: int = 0) -> None:
        super().__init__(message)
        self.tokens, self.limit = tokens, limit


class KeyRefused(InputError):
    """A name that could leave its folder, or be mistaken for another."""


class StoreError(SevenfoldError):
    """The disk did not do what was asked; nothing was acknowledged."""


class DiskFull(StoreError):
    """No space or quota left."""


class AccessDenied(StoreError):
    """No permission, or a read-only file system."""


class DiskFault(StoreError):
    """The device failed, or a write or fsync did."""


class FileMissing(StoreError):
    """The file or folder is not there."""


class FileExists(StoreError):
    """Something is there already."""


class NotRegular(StoreError):
    """A link, FIFO, device or folder where a plain file was expected."""


class FileDamaged(StoreError):
    """Content fails its check."""


class DatabaseFailed(StoreError):
    """The team server's database failed, cannot be reached, or cannot be used by this version."""


class WriterBroken(StoreError):
    """An earlier fsync failed; reopen before writing again."""


class MemoryConflict(SevenfoldError):
    """A memory is not as its writer saw it, and nothing of the transaction was done."""

    def __init__(self, message: str, *, keys: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.keys = keys


class ProjectError(SevenfoldError):
    """A project's folder belongs to another project, or cannot be used."""


class LockError(SevenfoldError):
    """A lock could not be taken or kept."""


class LockBusy(LockError):
    """Somebody else holds it."""


class SessionBusy(LockError):
    """The session is open in another process, or a second time in this one; the message names the holder."""


class LeaseLost(LockError):
    """The lease was taken over; nothing may be published with it."""


class MailError(SevenfoldError):
    """A message could not be delivered or read."""


class AddressUnknown(MailError):
    """Nobody is there by that name."""


class MailboxFull(MailError):
    """The recipient's quota is used up."""


class MessageTooLarge(MailError):
    """One message is over its own limit."""


class PeerRefused(MailError):
    """The other end of a socket is not the same user's, or this system cannot tell."""


class TeamError(SevenfoldError):
    """The team's server did not do what was asked."""


class TeamLeft(TeamError):
    """The project has left the server meanwhile, or joined another: nothing more is exchanged with it."""


class TeamOffline(TeamError):
    """No answer came, or none can be had now; the same may work later."""

    def __init__(self, message: str, *, retry_after: timedelta | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TeamRefused(TeamError):
    """The server does not want to; the same will not work until a file, the token or the server changes."""

    def __init__(
        self, message: str, *, status: int = 0, kind: str = "", keys: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.kind = status, kind
        self.keys = dict(keys or {})
        """Which memories it is about, and what is wrong with each; empty: all, or none in particular."""

    @property
    def was_never_applied(self) -> bool:
        """Whether the answer is about the commit itself, and not about who asks."""
        return self.status in (400, 413, 422)


class AgentError(SevenfoldError):
    """An agent could not be started."""


class AgentRefused(AgentError):
    """Too many agents run at once, or one was asked for where none may be started."""


class GitError(SevenfoldError):
    """Git is missing, failed, or took too long."""


class WorktreeError(AgentError):
    """Git did not make, show or remove a worktree."""


class ProviderError(SevenfoldError):
    """A model gave no answer that can be used. What the provider said of it is kept."""

    may_pass = False
    """Whether the same request may succeed later."""

    retry_after: timedelta | None = None
    """How long the provider asks to wait; None where it did not say, as with a spending limit."""

    should_retry: bool | None = None
    """Whether the provider said that another attempt makes sense; None where it did not say."""

    def __init__(
        self, message: str = "", *, status: int | None = None, kind: str = "", code: str = ""
    ) -> None:
        super().__init__(message)
        self.status = status
        """Of HTTP. An error inside a stream has none: the answer had begun as a 200."""
        self.kind = kind
        """The provider's name for the sort of error, such as `overloaded_error`."""
        self.code = code
        """The provider's name for the cause, such as `context_length_exceeded`."""


class PromptTooLong(ProviderError):
    """The prompt is over what the model takes. Both figures are None where the provider named none."""

    def __init__(
        self,
        message: str = "prompt is too long",
        *,
        tokens: int | None = None,
        limit: int | None = None,
        status: int | None = None,
        kind: str = "",
        code: str = "",
    ) -> None:
        super().__init__(message, status=status, kind=kind, code=code)
        self.tokens = tokens
        """Of the prompt."""
        self.limit = limit
        """For the prompt: the window, less the output asked for where the provider counts that too."""

    @property
    def overshoot(self) -> int | None:
        """By how many tokens, if the provider said."""
        return None if self.tokens is None or self.limit is None else max(0, self.tokens - self.limit)


class RateLimited(ProviderError):
    """Too many requests or tokens, or a spending limit."""

    may_pass = True

    def __init__(
        self,
        message: str = "rate limited",
        *,
        retry_after: timedelta | None = None,
        status: int | None = 429,
        kind: str = "",
        code: str = "",
    ) -> None:
        super().__init__(message, status=status, kind=kind, code=code)
        self.retry_after = retry_after


class Overloaded(ProviderError):
    """The provider failed or was too busy: its fault, and it may pass."""

    may_pass = True


class SignInRefused(ProviderError):
    """No key, a wrong one, or one without the right to do this."""


class ProviderRefused(ProviderError):
    """The request itself was refused; sent again, it will be refused again."""


class ThinkingRefused(ProviderRefused):
    """Thinking was sent back that is not as, or not where, it was given; without any, the rest is taken."""


class ReplyBroken(ProviderError):
    """An answer began, and broke off or cannot be read. What it used was billed all the same."""

    may_pass = True


class ProviderUnreachable(ProviderError):
    """No answer came at all: no connection, or none in time."""

    may_pass = True


class SpendRefused(ProviderError):
    """Background work may not spend now: a cap, a pause after failures, or the switch. No call was made."""


class ProxyError(SevenfoldError):
    """The proxy cannot be started or stopped."""


class ResidentUnavailable(SevenfoldError):
    """The resident process could not be started, or gave no answer in time."""


class LoopStopped(SevenfoldError):
    """The model made the same failing call again and again, and nobody was there to ask; or it paused so."""


class CompactionError(SevenfoldError):
    """A view cannot be cut down now; it is as it was."""


class CompactionBusy(CompactionError):
    """Another compaction is under way, or has just changed the view; ask again."""


class CompactionStopped(CompactionError):
    """Compaction is off, or automatic ones have helped nothing; one by hand may."""


class SimulatorError(SevenfoldError):
    """A simulator was not used as its script says."""


class CallUnexpected(SimulatorError):
    """A request that no step of the script answers."""


class StepsUnused(SimulatorError):
    """Steps of the script that nobody asked for."""
