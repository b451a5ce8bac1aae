"""What a provider may send, for properties: every block type, right, wrong, and never seen before."""

from __future__ import annotations

import json
from typing import TypeAlias, cast

from hypothesis import strategies as st

Wire: TypeAlias = dict[str, object]

LONE_SURROGATES = st.characters(categories=["Cs"])
texts = st.text(st.characters() | LONE_SURROGATES, max_size=12)
keys = texts | st.sampled_from(
    ["cache_control", "type", "content", "source", "citations", "caller", "id", "text"]
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**590, max_value=10**650)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)


def _over(under: Wire, over: Wire) -> Wire:
    return {**under, **over}


def _typed(kind: object, fields: Wire) -> Wire:
    return {**fields, "type": kind}


def _said(extra: Wire, role: str, content: object) -> Wire:
    return {**extra, "role": role, "content": content}


def _nest(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3)


anything: st.SearchStrategy[object] = st.recursive(scalars, _nest, max_leaves=8)
objects: st.SearchStrategy[Wire] = st.dictionaries(keys, anything, max_size=4)
markers = st.just({"type": "ephemeral"}) | st.just({"type": "ephemeral", "ttl": "1h"})
sources = st.fixed_dictionaries(
    {"type": st.sampled_from(["base64", "url", "file"]), "data": texts}
) | st.fixed_dictionaries({"type": st.just("content"), "content": st.lists(objects, max_size=2)})


def _block(kind: str, **fields: st.SearchStrategy[object]) -> st.SearchStrategy[Wire]:
    """A block as the API writes it: its fields, maybe others, maybe a cache marker."""
    named = st.fixed_dictionaries({"type": st.just(kind), **fields}, optional={"cache_control": markers})
    return st.builds(_over, objects, named)


def _plain_blocks() -> st.SearchStrategy[Wire]:
    return st.one_of(
        _block("text", text=texts),
        _block("thinking", thinking=texts, signature=texts),
        _block("redacted_thinking", data=texts),
        _block("tool_use", id=texts, name=texts, input=objects),
        _block("image", source=sources),
        _block("document", source=sources, title=texts | st.none()),
        _block("compaction", content=texts | st.none()),
        _block("search_result", content=st.lists(_block("text", text=texts), max_size=2)),
        _block("tool_reference", tool_name=texts),
    )


def _results(inner: st.SearchStrategy[Wire]) -> st.SearchStrategy[Wire]:
    content = texts | st.lists(inner, max_size=2)
    return _block("tool_result", tool_use_id=texts, content=content) | _block(
        "tool_result", tool_use_id=texts, content=content | st.none(), is_error=st.booleans() | st.none()
    )


KNOWN = (
    "text",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "tool_result",
    "image",
    "document",
    "compaction",
)
FIELDS = (
    "text",
    "thinking",
    "signature",
    "data",
    "id",
    "name",
    "input",
    "tool_use_id",
    "content",
    "is_error",
)

right_blocks = _plain_blocks() | _results(_plain_blocks() | _results(_plain_blocks()))
wrong_blocks: st.SearchStrategy[Wire] = st.builds(
    _typed,
    st.sampled_from(KNOWN),
    st.dictionaries(st.sampled_from((*FIELDS, "source")), anything, max_size=5),
)
unknown_blocks: st.SearchStrategy[Wire] = st.builds(_typed, texts | st.integers() | st.none(), objects)
blocks = right_blocks | wrong_blocks | unknown_blocks | objects
messages: st.SearchStrategy[Wire] = st.builds(
    _said,
    st.dictionaries(texts | st.sampled_from(["id", "model", "usage", "clear_at"]), anything, max_size=2),
    st.sampled_from(["user", "assistant", "system"]),
    texts | st.lists(blocks, max_size=3),
)


NUMBERS = st.from_regex(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,4})?", fullmatch=True)
SPACE = st.text(" \t\r\n", max_size=2)


@st.composite
def spelled(draw: st.DrawFn, value: object) -> str:
    """A value as JSON text: any white space, any escapes, numbers of any size, keys twice."""
    space = draw(SPACE)
    if isinstance(value, dict):
        items = cast("Wire", value).items()
        pairs = [(draw(spelled(key)), draw(spelled(item))) for key, item in items]
        if pairs and draw(st.booleans()):
            pairs.insert(0, (pairs[-1][0], draw(NUMBERS)))
        return "{" + ",".join(f"{space}{key}{space}:{item}" for key, item in pairs) + space + "}"
    if isinstance(value, list):
        parts = [draw(spelled(item)) for item in cast("list[object]", value)]
        return "[" + space + f"{space},".join(parts) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return draw(NUMBERS)


def as_bytes(text: str) -> bytes:
    """The text as it would come over the wire; half a surrogate pair travels too."""
    return text.encode("utf-8", "surrogatepass")
