"""Living documents: which files are, what a fork is told, and when."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import ToolUse, ToolUseId
from sevenfold.layers.living_docs.policy import (
    DocFacts,
    DocHeader,
    DocSettings,
    DocTask,
    build_doc_brief,
    choose_doc_step,
    parse_doc_header,
)

PLAIN = DocHeader("Parser")
TASK = DocTask("/p/a.md", "# MAGIC DOC: Parser\n\nSee {path} and {title}.\n", PLAIN, "edit")


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("# MAGIC DOC: Parser\n", PLAIN),
        ("\ufeff# magic doc: Parser", PLAIN),
        ("\n\nSome words first.\n\n#  MAGIC  DOC:   Parser  ##\n", PLAIN),
        ("---\ntitle: x\n---\n# MAGIC DOC: Parser\n", PLAIN),
        ("# MAGIC DOC: Parser\n\n_Keep it to a page._\n", DocHeader("Parser", "Keep it to a page.")),
        ("# MAGIC DOC: Parser\n*For *newcomers* only.*\n", DocHeader("Parser", "For *newcomers* only.")),
        ("# MAGIC DOC: Parser\r\n\r\n_One line._\r\n", DocHeader("Parser", "One line.")),
        ("# MAGIC DOC: Parser\n\n**Bold is no instruction.**\n", PLAIN),
        ("# MAGIC DOC: Parser\n\nText, and _italics_ in it.\n", PLAIN),
        ("```\n# a comment in code\n```\n# MAGIC DOC: Parser\n", PLAIN),
        ("# Something else\n\n# MAGIC DOC: Parser\n", None),
        ("## MAGIC DOC: Parser\n", None),
        ("# MAGIC DOC:\n", None),
        ("# MAGIC DOC Parser\n", None),
        ("    # MAGIC DOC: Parser\n", None),
        ("```\n# MAGIC DOC: Parser\n```\n", None),
        ("Say `# MAGIC DOC: Parser` in it.\n", None),
        ("", None),
    ],
)
def test_a_header_is_the_first_heading_and_the_italic_line_below(text: str, header: DocHeader | None) -> None:
    assert parse_doc_header(text) == header


@given(st.text())
def test_no_text_whatever_makes_reading_a_header_fail(text: str) -> None:
    header = parse_doc_header(text)
    assert header is None or header.title


@given(st.text(alphabet="#*_`~- \n:MAGICDOCmagicdoc", max_size=200))
def test_a_header_reads_the_same_with_anything_below_it(tail: str) -> None:
    whole = parse_doc_header(f"# MAGIC DOC: Parser\n\n_Short._\n\n{tail}")
    assert whole == DocHeader("Parser", "Short.")


def test_a_document_without_end_is_looked_at_no_further_than_its_beginning() -> None:
    assert parse_doc_header("word\n" * 1_000_000 + "# MAGIC DOC: Parser\n") is None


@pytest.mark.parametrize("is_idle", [True, False])
@pytest.mark.parametrize("may_edit", [True, False])
@pytest.mark.parametrize("tracked", [0, 1])
def test_documents_are_brought_up_to_date_after_an_idle_turn_alone(
    is_idle: bool, may_edit: bool, tracked: int
) -> None:
    facts = DocFacts(is_idle, may_edit, tracked)
    is_due = is_idle and may_edit and tracked > 0
    assert choose_doc_step(facts, DocSettings()) == ("update" if is_due else "wait")
    assert choose_doc_step(facts, DocSettings(enabled=False)) == "wait"


def test_a_fork_may_edit_that_one_file_and_nothing_else() -> None:
    given = build_doc_brief(TASK, "{path}|{tool}|{title}|{instruction}|{unknown}")
    assert given.directive == "/p/a.md|edit|Parser|none|{unknown}"

    def denial(name: str, **fields: str) -> str | None:
        return given.denial(ToolUse(ToolUseId("t"), name, JsonObject(fields)))

    assert denial("edit", file_path="/p/a.md") is None
    for name, path in [("edit", "/p/b.md"), ("write", "/p/a.md"), ("read", "/p/a.md"), ("shell", "")]:
        assert denial(name, file_path=path)
    assert denial("edit", file_path="/p/a.md", path="/p/b.md")


def test_what_a_document_says_is_fenced_and_its_braces_stay() -> None:
    directive = build_doc_brief(TASK, "{document}").directive
    assert "See {path} and {title}." in directive
    assert directive.startswith("<document ")
