"""A notebook as text: its cells and what they printed. Pictures are named, not shown."""

from __future__ import annotations

from collections.abc import Iterator

from sevenfold.core.errors import FileDamaged, WireError
from sevenfold.core.json import Json, JsonObject, read_object

MAX_OUTPUT_CHARS = 4_000
"""Of one cell: enough for a table or a traceback."""


def render_notebook(data: bytes, name: str) -> str:
    """The cells in order, each under a line that says what it is."""
    try:
        book = read_object(data)
    except WireError as error:
        raise FileDamaged(f"{name} is no notebook that can be read: {error}") from error
    cells = [cell for cell in _items(book.get("cells")) if isinstance(cell, JsonObject)]
    return "\n".join(line for number, cell in enumerate(cells, 1) for line in _cell(cell, number))


def _cell(cell: JsonObject, number: int) -> Iterator[str]:
    kind = cell.get("cell_type")
    yield f"--- cell {number}: {kind if isinstance(kind, str) else 'unknown'} ---"
    yield _joined(cell.get("source"))
    outputs = [_output(item) for item in _items(cell.get("outputs")) if isinstance(item, JsonObject)]
    printed = "\n".join(filter(None, outputs))
    if printed:
        yield f"--- output of cell {number} ---"
        cut = f"\n[cut; {len(printed):,} characters in all]" if len(printed) > MAX_OUTPUT_CHARS else ""
        yield printed[:MAX_OUTPUT_CHARS] + cut


def _output(output: JsonObject) -> str:
    if output.get("output_type") == "error":
        return "\n".join(_joined(line) for line in _items(output.get("traceback")))
    shown = output.get("data")
    if not isinstance(shown, JsonObject):
        return _joined(output.get("text"))
    text = _joined(shown.get("text/plain"))
    pictures = [f"[{kind}]" for kind in shown if kind.startswith("image/")]
    return "\n".join(filter(None, [text, *pictures]))


def _items(value: Json) -> tuple[Json, ...]:
    return value if isinstance(value, tuple) else ()


def _joined(value: Json) -> str:
    """Text, which notebooks also keep as a list of lines."""
    if isinstance(value, str):
        return value.removesuffix("\n")
    return "".join(part for part in _items(value) if isinstance(part, str)).removesuffix("\n")
