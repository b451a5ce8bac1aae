"""Every error a caller can meet.

SevenfoldError
├── InputError                  what was handed in cannot be used
│   ├── WireError               JSON that is no message, block or usage
│   ├── ScriptError             a script or recording that the simulator cannot play
│   ├── SettingsError           a setting with a value that is not allowed
│   └── KeyRefused              a name that could leave its folder, or be mistaken for another
├── StoreError                  the disk did not do what was asked; nothing was acknowledged
│   ├── DiskFull                no space or quota left
│   ├── AccessDenied            no permission, or a read-only file system
│   ├── DiskFault               the device failed, or a write or fsync did
│   ├── FileMissing             the file or folder is not there
│   ├── FileExists              something is there already
│   ├── NotRegular              a link, FIFO, device or folder where a plain file was expected
│   ├── FileDamaged             content fails its check
│   └── WriterBroken            an earlier fsync failed; reopen before writing again
├── ProjectError                a project's folder belongs to another project
├── LockError
│   ├── LockBusy                somebody else holds it
│   └── LeaseLost               the lease was taken over; nothing may be published with it
├── MailError
│   ├── MailboxFull             the recipient's quota is used up
│   └── MessageTooLarge         one message is over its own limit
└── SimulatorError              a simulator was not used as its script says
    ├── CallUnexpected          a request that no step of the script answers
    └── StepsUnused             steps of the script that nobody asked for
"""

from __future__ import annotations


class SevenfoldError(Exception):
    """Anything this package raises on purpose."""


class InputError(SevenfoldError):
    """What was handed in cannot be used."""


class WireError(InputError):
    """JSON that is no message, block or usage of the Messages API."""


class ScriptError(InputError):
    """A script or a recording that the simulator cannot play; the message names file, step and field."""


class SettingsError(InputError):
    """A setting with a value that is not allowed; the message names source, key, value and what is."""


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


class WriterBroken(StoreError):
    """An earlier fsync failed; reopen before writing again."""


class ProjectError(SevenfoldError):
    """A project's folder belongs to another project, or cannot be used."""


class LockError(SevenfoldError):
    """A lock could not be taken or kept."""


class LockBusy(LockError):
    """Somebody else holds it."""


class LeaseLost(LockError):
    """The lease was taken over; nothing may be published with it."""


class MailError(SevenfoldError):
    """A message could not be delivered or read."""


class MailboxFull(MailError):
    """The recipient's quota is used up."""


class MessageTooLarge(MailError):
    """One message is over its own limit."""


class SimulatorError(SevenfoldError):
    """A simulator was not used as its script says."""


class CallUnexpected(SimulatorError):
    """A request that no step of the script answers."""


class StepsUnused(SimulatorError):
    """Steps of the script that nobody asked for."""
