"""What a person typed, as a message: the text, and the images that it names by path."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Block, Image, Message, Text

MAX_PROMPT_IMAGE_BYTES = 3_750_000
"""What becomes 5 MB in base64, the most that an image may have."""
MAX_PROMPT_IMAGES = 20
"""In one message: above it the provider asks for smaller ones."""

_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_KINDS = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
_NAMED = re.compile(r"""(?<!\S)(?:@?"([^"\n]+)"|@?'([^'\n]+)'|@?((?:\\.|[^\s"'\\])+))""")
"""A word, perhaps after an @: in quotes, or with escaped spaces, as terminals write a dropped file."""


@dataclass(frozen=True, slots=True)
class UserInput:
    message: Message
    images: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()
    """Why an image that was named is not in the message."""


def read_user_input(text: str, cwd: Path) -> UserInput:
    """The message; an image that is named and there goes with it, and the text stays as it was typed."""
    found: list[Path] = []
    blocks: list[Block] = []
    problems: list[str] = []
    for path in _named_images(text, cwd):
        if path in found:
            continue
        read = (
            _read_image(path)
            if len(found) < MAX_PROMPT_IMAGES
            else f"{path}: at most {MAX_PROMPT_IMAGES} images"
        )
        if isinstance(read, str):
            problems.append(read)
        else:
            found.append(path)
            blocks.append(read)
    if not blocks:
        return UserInput(Message("user", text), (), tuple(problems))
    return UserInput(Message("user", (*blocks, Text(text))), tuple(found), tuple(problems))


def _named_images(text: str, cwd: Path) -> list[Path]:
    words = ("".join(groups) for groups in _NAMED.findall(text))
    paths = (_as_path(word, cwd) for word in words if word.lower().endswith(_SUFFIXES))
    return [path for path in paths if path.is_file()]


def _as_path(word: str, cwd: Path) -> Path:
    if word.startswith("file://"):
        return Path(unquote(urlsplit(word).path))
    return cwd / Path(re.sub(r"\\(.)", r"\1", word)).expanduser()


def _read_image(path: Path) -> Image | str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_PROMPT_IMAGE_BYTES + 1)
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    if len(data) > MAX_PROMPT_IMAGE_BYTES:
        return f"{path} has more than {MAX_PROMPT_IMAGE_BYTES:,} bytes; make it smaller"
    kind = _kind(data)
    if kind is None:
        return f"{path} is no PNG, JPEG, GIF or WebP image"
    encoded = base64.b64encode(data).decode("ascii")
    return Image(JsonObject({"type": "base64", "media_type": kind, "data": encoded}))


def _kind(data: bytes) -> str | None:
    """By its first bytes: names lie."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _KINDS if data.startswith(start)), None)


def add_context(message: Message, context: Sequence[Text]) -> Message:
    """The message with these texts before it."""
    return Message("user", (*context, *message.blocks)) if context else message
