"""Nothing with a secret in it leaves the machine (SPEC I4): each text is looked through, and all of them in a
row, because a key may lie across two files."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sevenfold.core.errors import FileMissing, InputError
from sevenfold.core.json import Json, JsonObject, freeze_object, read_object, write_json
from sevenfold.core.secrets import MAX_CHARS, WHY, Allowance, Fingerprint, Inspection, find_secrets
from sevenfold.store.folder import Folder
from sevenfold.store.offload import durably
from sevenfold.sync.protocol import TeamKey

ALLOWED = "allowed.json"
_MAX_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Allowed:
    """What people have allowed on this device, and the key that names findings."""

    key: bytes
    allowances: tuple[Allowance, ...] = ()


class SecretScreen:
    """Looks through what is about to be sent. `folder` holds what was allowed."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    async def __call__(self, texts: Mapping[TeamKey, str]) -> Mapping[TeamKey, str]:
        return await durably(lambda: self.inspect(texts))

    def inspect(self, texts: Mapping[TeamKey, str]) -> dict[TeamKey, str]:
        """What may not leave and why: rule, line and fingerprint. Takes CPU time: run it in a thread."""
        allowed = self.read()
        blocked = {
            key: _reason(found) for key, text in texts.items() if not (found := _look(text, allowed)).is_clean
        }
        while across := _find_across({key: one for key, one in texts.items() if key not in blocked}, allowed):
            blocked |= across
        return blocked

    def allow(self, fingerprint: str, reason: str) -> None:
        """A person's word that one finding may be shared."""
        allowed = self.read()
        new = Allowance(Fingerprint(fingerprint), reason)
        others = [one for one in allowed.allowances if one.fingerprint != fingerprint]
        self._write(replace(allowed, allowances=(*others, new)))

    def read(self) -> Allowed:
        try:
            return _read(read_object(self._folder.read(ALLOWED, max_bytes=_MAX_BYTES)))
        except FileMissing:
            made = Allowed(secrets.token_bytes(32))
            self._write(made)
            return made

    def _write(self, allowed: Allowed) -> None:
        rows = [{"fingerprint": one.fingerprint, "reason": one.reason} for one in allowed.allowances]
        data = freeze_object({"key": allowed.key.hex(), "allowances": rows})
        self._folder.replace(ALLOWED, write_json(data))


def _look(text: str, allowed: Allowed) -> Inspection:
    return find_secrets(text, key=allowed.key, allowances=allowed.allowances)


def _find_across(texts: Mapping[TeamKey, str], allowed: Allowed) -> dict[TeamKey, str]:
    """A secret that begins in one text and ends in the next blocks both."""
    for keys in _stretches(texts):
        found = _look(_joined([texts[key] for key in keys]), allowed)
        if found.findings:
            at = _place(found.findings[0].line, [texts[key] for key in keys]) if len(keys) > 2 else 0
            return dict.fromkeys(keys[at : at + 2], f"together with the next file: {_reason(found)}")
        if found.refusal is not None:
            return dict.fromkeys(keys, _reason(found))
    return {}


def _stretches(texts: Mapping[TeamKey, str]) -> Iterator[list[TeamKey]]:
    """Neighbours to look through at once, two at least; each stretch begins where the last one ends."""
    stretch: list[TeamKey] = []
    size = 0
    for key, text in texts.items():
        if len(stretch) > 1 and size + len(text) > MAX_CHARS:
            yield stretch
            stretch, size = stretch[-1:], len(texts[stretch[-1]])
        stretch.append(key)
        size += len(text)
    if len(stretch) > 1:
        yield stretch


def _joined(texts: Sequence[str]) -> str:
    """All of them; of two that are too long together, what lies around the seam."""
    joined = "".join(texts)
    if len(joined) <= MAX_CHARS:
        return joined
    half = MAX_CHARS // 2
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
        return WHY[found.refusal] if found.refusal else ""
    first = found.findings[0]
    more = f", and {len(found.findings) - 1} more" if len(found.findings) > 1 else ""
    return f"line {first.line}: {first.name} ({first.rule}, fingerprint {first.fingerprint}){more}"


def _read(value: JsonObject) -> Allowed:
    key, rows = value.get("key"), value.get("allowances")
    if not isinstance(key, str) or not isinstance(rows, tuple):
        raise InputError(f"{ALLOWED} is not as it was written; remove it, and allow again what may be shared")
    return Allowed(bytes.fromhex(key), tuple(map(_allowance, rows)))


def _allowance(value: Json) -> Allowance:
    row = value if isinstance(value, JsonObject) else JsonObject()
    return Allowance(Fingerprint(str(row.get("fingerprint"))), str(row.get("reason")))
