"""A text file as text, and back to bytes with the encoding and the line ends that it had."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from sevenfold.core.errors import FileDamaged, InputError

_SNIFFED = 8_192
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How a text stands in its file."""

    encoding: str = "utf-8"
    mark: bytes = b""
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
        return form.mark + text.encode(form.encoding)
    except UnicodeEncodeError as error:
        odd = text[error.start : error.start + 1]
        raise InputError(
            f"{name} is kept in {form.encoding}, which has no {odd!r}; leave that out, or convert the file"
        ) from error
