"""Request bodies: read up to a cap, inflated up to a cap, and turned into values."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Sequence

from sevenfold.team.server.api_errors import ApiError
from sevenfold.team.server.limits import ServerLimits


async def read_capped(chunks: AsyncIterator[bytes], limit_bytes: int) -> bytes:
    """The whole body, or `Refusal` 413 as soon as it is larger than allowed."""
    data = bytearray()
    async for chunk in chunks:
        data += chunk
        if len(data) > limit_bytes:
            raise make_too_large(f"the request has more than {limit_bytes:,} bytes")
    return bytes(data)


def inflate(data: bytes, encoding: str, limit_bytes: int) -> bytes:
    """Undo `Content-Encoding`, never past the cap: a kilobyte may stand for a gigabyte of zeros."""
    if encoding in ("", "identity"):
        return data
    if encoding != "gzip":
        raise ApiError(
            status=415,
            kind="unsupported",
            message=f"{encoding[:40]!r} is no encoding that is read here",
            advice="send gzip, or none",
        )
    reader = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        plain = reader.decompress(data, limit_bytes + 1)
    except zlib.error as error:
        raise ApiError(
            status=400,
            kind="bad request",
            message=f"the body is no gzip: {error}",
            advice="send it again, or plain",
        ) from error
    if len(plain) > limit_bytes:
        raise make_too_large(f"the request has more than {limit_bytes:,} bytes once inflated")
    if not reader.eof or reader.unused_data:
        raise ApiError(
            status=400,
            kind="bad request",
            message="the gzip is cut off, or has something behind it",
            advice="send it again",
        )
    return plain


def check_sizes(raw_bytes: int, texts: Sequence[str], limits: ServerLimits) -> None:
    """Many texts share a small body; one alone may be as large as a file may be."""
    if not texts:
        raise ApiError(
            status=422, kind="bad request", message="the request holds no text", advice="send at least one"
        )
    for text in texts:
        size = len(text.encode())
        if size > limits.file_bytes:
            raise make_too_large(f"one text has {size:,} bytes; {limits.file_bytes:,} is the limit")
    if len(texts) > 1 and raw_bytes > limits.body_bytes:
        raise make_too_large(
            f"{len(texts):,} texts came in {raw_bytes:,} bytes; {limits.body_bytes:,} is the limit"
        )


def make_too_large(message: str) -> ApiError:
    return ApiError(
        status=413,
        kind="too large",
        message=message,
        advice="split it: a large file travels alone, others in smaller bodies",
    )
