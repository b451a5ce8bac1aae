"""What a person typed, as a message: the text, and the images that it names by path."""

from __future__ import annotations

import base64
import errno
import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from sevenfold.agent.tui.text_renderer import TextRenderer
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
    for mention in find_image_mentions(text, cwd):
        path = mention.path
        if path in found:
            continue
        if mention.is_missing:
            problems.append(f"{mention.name}: {mention.problem}")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageMention:
    """An image that a text names."""

    path: Path
    name: str
    remark: str = ""
    """Its kind and size."""
    problem: str = ""
    """Why it cannot be sent; empty: it can."""
    is_missing: bool = False
    """There is no such file."""


def find_image_mentions(text: str, cwd: Path) -> list[ImageMention]:
    """The images that a text names. A path that is not there is one only behind an @: without it, a name that
    looks like an image's is a word."""
    found: dict[Path, ImageMention] = {}
    for match in _NAMED.finditer(text):
        word = "".join(group or "" for group in match.groups())
        if word.lower().endswith(_SUFFIXES):
            path = _as_path(word, cwd)
            if path not in found and (_is_file(path) or match[0].startswith("@")):
                found[path] = _look_at(path)
    return list(found.values())


def _look_at(path: Path) -> ImageMention:
    """Its first bytes tell what it is; nothing more is read."""
    try:
        if not path.exists():
            return ImageMention(path=path, name=path.name, problem="there is no such file", is_missing=True)
        if not path.is_file():
            return ImageMention(path=path, name=path.name, problem="it is no plain file", is_missing=True)
        with path.open("rb") as file:
            kind, size = _kind(file.read(16)), path.stat().st_size
    except OSError as error:
        is_long = error.errno == errno.ENAMETOOLONG
        problem = "no file has so long a name" if is_long else f"it cannot be read: {error.strerror}"
        return ImageMention(path=path, name=path.name[:80], problem=problem, is_missing=is_long)
    if kind is None:
        return ImageMention(path=path, name=path.name, problem="it is no PNG, JPEG, GIF or WebP image")
    if size > MAX_PROMPT_IMAGE_BYTES:
        problem = f"it has {size:,} bytes, over the {MAX_PROMPT_IMAGE_BYTES:,} that are taken"
        return ImageMention(path=path, name=path.name, problem=problem)
    remark = f"{kind.removeprefix('image/').upper()}, {max(1, size // 1000):,} kB"
    return ImageMention(path=path, name=path.name, remark=remark)


def _as_path(word: str, cwd: Path) -> Path:
    if word.startswith("file://"):
        return Path("/", unquote(word.removeprefix("file://").partition("/")[2]))
    # Not `Path.expanduser`, which raises where nobody has the name behind the tilde.
    return cwd / os.path.expanduser(re.sub(r"\\(.)", r"\1", word))


def _is_file(path: Path) -> bool:
    """What no file can be called is none: a text may hold any word."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


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


# Images while they are typed: a line for each above the input, and those of the clipboard.

_PASTE_COMMANDS = (
    ("wl-paste", "--no-newline", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
    ("pngpaste", "-"),
)
"""Programs that print an image of the clipboard: Wayland, X11, macOS."""
_PASTE_SECONDS = 5


@dataclass(slots=True)
class ImageChips:
    """What stands above the input for each image that it names."""

    cwd: Path
    _text: str = ""
    _found: list[ImageMention] = field(default_factory=list[ImageMention])

    def render(self, text: str, renderer: TextRenderer) -> str:
        """Looks at files only when the text has changed."""
        if text != self._text:
            self._text, self._found = text, find_image_mentions(text, self.cwd)
        return "\n".join(
            renderer.line(
                f"[{item.name}: {item.problem or item.remark}]", "error" if item.problem else "accent"
            )
            for item in self._found
        )


def read_clipboard_image(folder: Path) -> Path | str:
    """Store the image that the clipboard has in a folder of ours: its path, or why there is none. Blocks."""
    found = next((command for command in _PASTE_COMMANDS if shutil.which(command[0])), None)
    if found is None:
        return f"an image of the clipboard needs one of {', '.join(row[0] for row in _PASTE_COMMANDS)}"
    try:
        ran = subprocess.run(
            found, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PASTE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{found[0]} did not give the clipboard: {error}"
    if ran.returncode or not ran.stdout:
        return "the clipboard has no image"
    if len(ran.stdout) > MAX_PROMPT_IMAGE_BYTES:
        return f"the image has {len(ran.stdout):,} bytes, over the {MAX_PROMPT_IMAGE_BYTES:,} that are taken"
    path = folder / f"pasted-{secrets.token_hex(4)}.png"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(ran.stdout)
    except OSError as error:
        return f"{path} cannot be written: {error.strerror}"
    return path
