"""What a person has agreed to run of a repository's own files: by content, so that a changed file is asked
about again. It lies where no agent may write."""

from __future__ import annotations

from sevenfold.core.canonical import digest
from sevenfold.core.errors import FileDamaged, FileMissing, NotRegular, WireError
from sevenfold.core.json import JsonObject, read_object, write_json
from sevenfold.store.folder import Folder

TRUSTED = "trusted.json"
MAX_TRUST_BYTES = 256 * 1024


class Trust:
    """The agreements for one project, in its control folder."""

    def __init__(self, control: Folder) -> None:
        self._folder = control

    def is_trusted(self, name: str, content: bytes) -> bool:
        """Whether somebody has agreed to this file as it is now."""
        return self._read().get(name) == digest(content)

    def trust(self, name: str, content: bytes) -> None:
        """Somebody agreed: until the file changes, nobody is asked again."""
        self._folder.replace(TRUSTED, write_json(JsonObject({**self._read(), name: digest(content)})))

    def _read(self) -> JsonObject:
        """Nothing is trusted where the record cannot be read: that costs a question."""
        try:
            return read_object(self._folder.read(TRUSTED, max_bytes=MAX_TRUST_BYTES))
        except (FileMissing, FileDamaged, NotRegular, WireError):
            return JsonObject()
