"""Nothing with a secret in it leaves the machine: each text is scanned, and then all of them in a row,
because a key may be split across two files."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sevenfold.core.errors import FileMissing, InputError
from sevenfold.core.json import Json, JsonObject, freeze_object, read_object, write_json
from sevenfold.core.secrets import (
    MAX_SCAN_CHARS,
    Allowance,
    Fingerprint,
    Inspection,
    describe_refusal,
    find_secrets,
)
from sevenfold.core.system import run_blocking
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.locks import edit_file
from sevenfold.team.protocol import TeamKey

ALLOWED_FILE = "allowed.json"
SEAM_CHARS = 20_000
"""Around the place where two texts meet: the longest key there is, encoded three times over."""

_MAX_BYTES = 4 * 1024 * 1024
_FINGERPRINT = re.compile("[0-9a-f]{20}", re.ASCII)


@dataclass(frozen=True, slots=True)
class AllowedSecrets:
    """What people have allowed on this device, and the key that names findings."""

    key: bytes
    allowances: tuple[Allowance, ...] = ()


class SecretScreen:
    """Looks through what is about to be sent. `folder` holds what was allowed."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    async def __call__(self, texts: Mapping[TeamKey, str]) -> Mapping[TeamKey, str]:
        return await run_blocking(lambda: self.inspect(texts))

    def inspect(self, texts: Mapping[TeamKey, str]) -> dict[TeamKey, str]:
        """What may not leave and why: rule, line and fingerprint. Takes CPU time: run it in a thread."""
        allowed = self.read()
        blocked = {
            key: _reason(found) for key, text in texts.items() if not (found := _look(text, allowed)).is_clean
        }
        blocked |= _find_in_names(texts, allowed)
        while across := _find_across({key: one for key, one in texts.items() if key not in blocked}, allowed):
            blocked |= across
        return blocked

    def allow(self, fingerprint: str, reason: str) -> None:
        """A person's word that one finding may be shared."""
        if not _FINGERPRINT.fullmatch(fingerprint):
            raise InputError(
                f"{fingerprint!r:.80} is no fingerprint; `sevenfold team` shows that of what is held back"
            )
        new = Allowance(Fingerprint(fingerprint), reason)

        def added(before: AllowedSecrets) -> AllowedSecrets:
            others = [one for one in before.allowances if one.fingerprint != fingerprint]
            return replace(before, allowances=(*others, new))

        self._edit(added)

    def read(self) -> AllowedSecrets:
        try:
            return _read(self._folder.read(ALLOWED_FILE, max_bytes=_MAX_BYTES))
        except FileMissing:
            return self._edit(lambda made: made)

    def _edit(self, change: Callable[[AllowedSecrets], AllowedSecrets]) -> AllowedSecrets:
        def changed(before: bytes | None) -> bytes:
            return _written(change(_read(before) if before else AllowedSecrets(secrets.token_bytes(32))))

        kept = edit_file(self._folder, ALLOWED_FILE, changed, control=self._folder, max_bytes=_MAX_BYTES)
        return _read(kept or b"")


def _look(text: str, allowed: AllowedSecrets) -> Inspection:
    return find_secrets(text, key=allowed.key, allowances=allowed.allowances)


def _find_in_names(texts: Mapping[TeamKey, str], allowed: AllowedSecrets) -> dict[TeamKey, str]:
    """A name leaves too. All of them are looked through at once, and one by one only where that finds any."""
    if _look("\n".join(texts)[:MAX_SCAN_CHARS], allowed).is_clean:
        return {}
    found = {key: _look(key.removesuffix(".md"), allowed) for key in texts}
    return {key: f"in its name: {_reason(one)}" for key, one in found.items() if not one.is_clean}


def _find_across(texts: Mapping[TeamKey, str], allowed: AllowedSecrets) -> dict[TeamKey, str]:
    """A secret that begins in one text and ends in the next blocks both."""
    for keys in _stretches(texts):
        if blocked := _find_along(keys, texts, allowed):
            return blocked
    return {}


def _find_along(
    keys: Sequence[TeamKey],
    texts: Mapping[TeamKey, str],
    allowed: AllowedSecrets,
    limit: int = MAX_SCAN_CHARS,
) -> dict[TeamKey, str]:
    row = [texts[key] for key in keys]
    found = _look(_joined(row, limit), allowed)
    if found.findings:
        at = _place(found.findings[0].line, row) if len(keys) > 2 else 0
        return dict.fromkeys(keys[at : at + 2], f"together with the next file: {_reason(found)}")
    if found.refusal is None:
        return {}
    # Each has been looked through by itself: what is too much at once is not, in pairs or around the seam.
    if len(keys) > 2:
        pairs = (_find_along(pair, texts, allowed) for pair in pairwise(keys))
        return next(filter(None, pairs), dict[TeamKey, str]())
    if limit > SEAM_CHARS:
        return _find_along(keys, texts, allowed, SEAM_CHARS)
    return dict.fromkeys(keys, _reason(found))


def _stretches(texts: Mapping[TeamKey, str]) -> Iterator[list[TeamKey]]:
    """Neighbours to look through at once, two at least; each stretch begins where the last one ends."""
    stretch: list[TeamKey] = []
    size = 0
    for key, text in texts.items():
        if len(stretch) > 1 and size + len(text) > MAX_SCAN_CHARS:
            yield stretch
            stretch, size = stretch[-1:], len(texts[stretch[-1]])
        stretch.append(key)
        size += len(text)
    if len(stretch) > 1:
        yield stretch


def _joined(texts: Sequence[str], limit: int) -> str:
    """All of them; of two that are too long together, what lies around the seam."""
    joined = "".join(texts)
    if len(joined) <= limit:
        return joined
    half = limit // 2
    return texts[0][-half:] + texts[1][:half]


def _place(line: int, texts: Sequence[str]) -> int:
    """In which of the texts a line of all of them in a row begins."""
    for at, text in enumerate(texts):
        line -= text.count("\n")
        if line < 1 or (line == 1 and not text.endswith("\n")):
            return at
    return len(texts) - 1


def _reason(found: Inspection) -> str:
    if not found.findings:
        return describe_refusal(found.refusal) if found.refusal else ""
    first = found.findings[0]
    more = f", and {len(found.findings) - 1} more" if len(found.findings) > 1 else ""
    return f"line {first.line}: {first.name} ({first.rule}, fingerprint {first.fingerprint}){more}"


def _written(allowed: AllowedSecrets) -> bytes:
    rows = [{"fingerprint": one.fingerprint, "reason": one.reason} for one in allowed.allowances]
    return write_json(freeze_object({"key": allowed.key.hex(), "allowances": rows}))


def _read(data: bytes) -> AllowedSecrets:
    try:
        value = read_object(data)
        key, rows = value.get("key"), value.get("allowances")
        if isinstance(key, str) and isinstance(rows, tuple):
            return AllowedSecrets(bytes.fromhex(key), tuple(map(_allowance, rows)))
    except (InputError, ValueError):
        pass
    raise InputError(
        f"{ALLOWED_FILE} is not as it was written; remove it, and allow again what may be shared"
    )


def _allowance(value: Json) -> Allowance:
    row = value if isinstance(value, JsonObject) else JsonObject()
    return Allowance(Fingerprint(str(row.get("fingerprint"))), str(row.get("reason")))
