"""The repository explains itself: no file cites a document that is not in it."""

from __future__ import annotations

import re

import pytest

from tests.contracts.source_tree import relative, tracked_files

pytestmark = pytest.mark.gate

DOCUMENTS = ("SPEC", "API", "DESIGN", "RELIABILITY", "COMPONENTS", "WIRE", "CHAT")
_NAMES = "|".join(DOCUMENTS)
# In pieces, so that this file does not contain what it forbids.
CITED = re.compile(
    rf"\b(?:{_NAMES})[.]md\b"
    rf"|\b(?:{_NAMES})(?:'s)?[ :]+§"
    r"|\bSPEC(?:'s)? [A-Z](?:\d+)?\b"
    r"|\b(?:DESIGN|RELIABILITY|COMPONENTS) [A-Z]?\d"
)


def citations(text: str) -> list[str]:
    return CITED.findall(text)


def test_no_file_cites_a_document_outside_the_repository() -> None:
    found: dict[str, list[str]] = {}
    for path in tracked_files():
        try:
            cited = citations(path.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            continue
        if cited:
            found[relative(path)] = cited
    assert found == {}


@pytest.mark.parametrize(
    "parts",
    [
        *((f"see {name}", ".md") for name in DOCUMENTS),
        ("the index (SP", "EC F2)"),
        ("old results (SP", "EC C1\N{EN DASH}C3, C6)"),
        ("living documents (SP", "EC L)"),
        ("what API", " §1.6 says"),
        ("spending (DES", "IGN §4.12)"),
        ("a secret (RELI", "ABILITY F4)"),
    ],
)
def test_a_citation_is_found(parts: tuple[str, str]) -> None:
    assert citations("".join(parts)) != []


@pytest.mark.parametrize(
    "text",
    [
        "SPEC = ToolSpec(",
        "tools = (*found, SPEC.declared())",
        "docs/chat.md",
        "the Messages API and R-cache-7 of docs/simulator-contract.md",
        "AGENTS.md, README.md, MEMORY.md",
        "a chat; CHAT = (",
    ],
)
def test_a_name_that_cites_nothing_passes(text: str) -> None:
    assert citations(text) == []
