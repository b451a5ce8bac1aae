"""What a person has answered about a repository's own files: by content, so that a changed file is asked
about again. It lies where no agent may write."""

from __future__ import annotations

from typing import Literal, TypeAlias

from sevenfold.core.canonical import digest
from sevenfold.core.errors import FileDamaged, FileMissing, NotRegular, WireError
from sevenfold.core.json import JsonObject, read_object, write_json
from sevenfold.store.files.folder import Folder

TRUSTED_FILE = "trusted.json"
MAX_TRUST_BYTES = 256 * 1024

_REFUSED = "refused:"
"""Before the name of a file that somebody has said no to."""

Consent: TypeAlias = Literal["agreed", "refused", "unasked"]


class TrustStore:
    """The agreements for one project, in its control folder."""

    def __init__(self, control: Folder) -> None:
        self._folder = control

    def find(self, name: str, content: bytes) -> Consent:
        """What somebody has answered about this file as it is now."""
        known, wanted = self._read(), digest(content)
        if known.get(name) == wanted:
            return "agreed"
        return "refused" if known.get(_REFUSED + name) == wanted else "unasked"

    def keep(self, name: str, content: bytes, *, is_agreed: bool) -> None:
        """Write an answer down: it holds until the file changes."""
        if is_agreed:
            self.trust(name, content)
        else:
            self.refuse(name, content)

    def is_trusted(self, name: str, content: bytes) -> bool:
        """Whether somebody has agreed to this file as it is now."""
        return self._read().get(name) == digest(content)

    def trust(self, name: str, content: bytes) -> None:
        """Somebody agreed: until the file changes, nobody is asked again."""
        self._write(name, _REFUSED + name, content)

    def refuse(self, name: str, content: bytes) -> None:
        """Somebody said no: until the file changes, nobody is asked again."""
        self._write(_REFUSED + name, name, content)

    def _write(self, key: str, opposite: str, content: bytes) -> None:
        kept = {known: value for known, value in self._read().items() if known != opposite}
        self._folder.replace(TRUSTED_FILE, write_json(JsonObject({**kept, key: digest(content)})))

    def _read(self) -> JsonObject:
        """Nothing is trusted where the record cannot be read: that costs a question."""
        try:
            return read_object(self._folder.read(TRUSTED_FILE, max_bytes=MAX_TRUST_BYTES))
        except (FileMissing, FileDamaged, NotRegular, WireError):
            return JsonObject()
