"""Text files: decoding, encoding with the same encoding and line ends, and paths in tool calls."""

from __future__ import annotations

import codecs
import os
from dataclasses import dataclass
from pathlib import Path

from sevenfold.core.errors import AccessDenied, FileDamaged, InputError
from sevenfold.core.json import JsonObject, get_string
from sevenfold.core.text.safe_text import quote_name
from sevenfold.core.tool_context import ToolContext
from sevenfold.store.files.keys import check_path
from sevenfold.store.project.user_files import resolve_path

_SNIFFED = 8_192
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How a text stands in its file."""

    encoding: str = "utf-8"
    bom: bytes = b""
    """The byte order mark at its beginning."""
    is_crlf: bool = False
    """Every line ends with CR LF. Where some do not, line ends are part of the text."""


@dataclass(frozen=True, slots=True)
class TextFile:
    text: str
    """Lines end with LF alone where all of them ended alike."""
    form: TextFormat


def is_binary(head: bytes) -> bool:
    """Whether a file that begins so is no text."""
    return b"\0" in head[:_SNIFFED] and not head.startswith(_UTF16)


def decode_text_file(data: bytes, name: str) -> TextFile:
    """The text of a file. One that is not UTF-8 is read byte by byte, so that it goes back as it came."""
    if is_binary(data):
        raise FileDamaged(f"{name} is no text ({len(data):,} bytes); look at it with a command")
    mark = next((mark for mark in (codecs.BOM_UTF8, *_UTF16) if data.startswith(mark)), b"")
    encoding = {_UTF16[0]: "utf-16-le", _UTF16[1]: "utf-16-be"}.get(mark, "utf-8")
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError:
        mark, encoding, text = b"", "latin-1", data.decode("latin-1")
    is_crlf = "\r\n" in text and text.count("\n") == text.count("\r\n")
    return TextFile(text.replace("\r\n", "\n") if is_crlf else text, TextFormat(encoding, mark, is_crlf))


def encode_text_file(text: str, form: TextFormat, name: str) -> bytes:
    """The bytes of a text in this form."""
    if form.is_crlf:
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    try:
        return form.bom + text.encode(form.encoding)
    except UnicodeEncodeError as error:
        odd = text[error.start : error.start + 1]
        raise InputError(
            f"{name} is kept in {form.encoding}, which has no {odd!r}; leave that out, or convert the file"
        ) from error


# From the path in a call to the file that was allowed.

FILE_PATH_SCHEMA = {
    "type": "string",
    "description": "The file: absolute, or relative to the working directory.",
}


def resolve_asked_path(given: JsonObject, key: str, place: ToolContext, default: str | None = None) -> str:
    """The path that a call names, made absolute and otherwise as it stands: links and `..` are kept."""
    text = get_string(given, key, default)
    if not text:
        raise InputError(f"{key} is empty; name a file")
    check_path(text)
    home = place.environ.get("HOME", "")
    if home and (text == "~" or text.startswith("~/")):
        return home + text[1:]
    return os.path.join(place.cwd, text)


def allowed_path(asked: str, place: ToolContext) -> str:
    """Where the path leads now; refused unless that is what was allowed."""
    real = resolve_path(asked)
    if place.admitted is not None:
        if real not in place.admitted:
            raise AccessDenied(
                f"{asked} leads to {real}, which is not what was allowed; it was changed meanwhile: try again"
            )
        return real
    folders = [place.root, place.cwd, *([place.session_folder] if place.session_folder else [])]
    if not any(Path(real).is_relative_to(folder) for folder in folders):
        raise AccessDenied(
            f"{asked} leads to {real}, outside {place.root}; only files in there are used here"
        )
    return real


def display_path(real: str, place: ToolContext) -> str:
    """The path as a person would say it: relative where it lies in the working directory.

    Quoted where it would not stand on one line: a repository chooses the names of its files.
    """
    path = Path(real)
    return quote_name(str(path.relative_to(place.cwd)) if path.is_relative_to(place.cwd) else real)
