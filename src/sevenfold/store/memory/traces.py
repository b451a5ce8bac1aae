"""What is kept beside memories and holds names or words of them: forgotten when something is erased.

control/recall/              what a search keeps: made again when it is needed
        dreams/              accounts of dreams: that they were, and what can be taken back, stays
        memory-marks.json    what was found wrong with a memory
        memory-uses.json     how often each was used
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from contextlib import suppress

from sevenfold.core.errors import FileMissing, InputError
from sevenfold.core.json import read_object, write_json
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.marks import MarkStore
from sevenfold.store.memory.uses import UseStore

_SEARCH = "recall"
DREAMS_FOLDER = "dreams"
MAX_ACCOUNT_BYTES = 1024 * 1024

_WORDY = ("reason", "changed", "removed", "archived", "spared", "let_go", "report", "steps")
"""In the account of a dream: names of memories, and words of them."""


def forget_traces(control: Folder, changed: Collection[str], gone: Collection[str]) -> None:
    """Of memories of which something was erased, and of those that are gone. Which words a search and dreams
    hold is not asked: all of them go."""
    MarkStore(control).put(dict.fromkeys(changed))
    UseStore(control).forget(gone)
    with suppress(FileMissing), control.subfolder(_SEARCH, create=False) as kept:
        for name in kept.names():
            kept.remove(name)
    with suppress(FileMissing), control.subfolder(DREAMS_FOLDER, create=False) as dreams:
        for name in dreams.names():
            _forget_dream(dreams, name)


def _forget_dream(dreams: Folder, name: str) -> None:
    if name.endswith(".diff"):
        dreams.remove(name)
    elif "." not in name:
        # The copy of one that died; one that is under way ends with an error, and nothing is changed by it.
        shutil.rmtree(dreams.path / name, ignore_errors=True)
    elif name.endswith(".json"):
        try:
            account = read_object(dreams.read(name, max_bytes=MAX_ACCOUNT_BYTES))
        except InputError:
            dreams.remove(name)
        else:
            dreams.replace(name, write_json(account.without(*_WORDY)) + b"\n")
