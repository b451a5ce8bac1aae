"""Blocks that lack what their type needs."""

from __future__ import annotations

import pytest

from tests.simulator.asking import Asker, Fields, assistant, result, tool, use, user

PNG: Fields = {"type": "base64", "media_type": "image/png", "data": "aGk="}
PDF: Fields = {**PNG, "media_type": "application/pdf"}
FOUND: Fields = {
    "type": "search_result",
    "source": "https://example.invalid",
    "title": "Birds",
    "content": [{"type": "text", "text": "They fly."}],
}


def image(**source: object) -> Fields:
    return {"type": "image", "source": source}


def document(**source: object) -> Fields:
    return {"type": "document", "source": source}


@pytest.mark.rule("validation-28")
@pytest.mark.parametrize(
    "block",
    [
        image(**PNG),
        image(type="url", url="https://example.invalid/a.png"),
        image(type="file", file_id="file_1"),
        document(**PDF),
        document(type="text", media_type="text/plain", data="Hi"),
        document(type="content", content="Hi"),
        document(type="content", content=[{"type": "text", "text": "Hi"}]),
        document(type="url", url="https://example.invalid/a.pdf"),
        FOUND,
        {"type": "container_upload", "file_id": "file_1"},
    ],
)
def test_a_block_with_all_it_needs_passes(ask: Asker, block: Fields) -> None:
    assert ask.create(user("Look.", block)).status == 200


@pytest.mark.rule("validation-28")
@pytest.mark.parametrize(
    ("block", "told"),
    [
        ({"type": "text"}, "text.text: Field required"),
        ({"type": "text", "text": 5}, "text.text: Input should be a valid string"),
        ({"type": "image"}, "image.source: Field required"),
        (image(), "image.source.type: Field required"),
        (image(type="disk"), "image.source.type: Input should be 'base64', 'url' or 'file'"),
        (image(type="base64", media_type="image/png"), "image.source.base64.data: Field required"),
        (image(**{**PNG, "data": ""}), "image.source.base64.data: must not be empty"),
        (
            image(**{**PNG, "media_type": "image/bmp"}),
            "image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or "
            "'image/webp'",
        ),
        (image(type="url"), "image.source.url.url: Field required"),
        ({"type": "document"}, "document.source: Field required"),
        ({"type": "document", "source": "a.pdf"}, "document.source: Input should be an object"),
        (document(**PNG), "document.source.base64.media_type: Input should be 'application/pdf'"),
        (
            document(type="content", content=[image(), {"type": "text"}]),
            "document.source.content.content.0.image.source.type: Field required",
        ),
        ({"type": "search_result", "title": "x"}, "search_result.source: Field required"),
        ({**FOUND, "content": "x"}, "search_result.content: Input should be a valid list"),
        ({"type": "container_upload"}, "container_upload.file_id: Field required"),
    ],
)
def test_a_block_that_lacks_something_is_named_with_its_path(ask: Asker, block: Fields, told: str) -> None:
    answer = ask.create(user("Look.", block))
    assert (answer.status, answer.message) == (400, f"messages.0.content.1.{told}")


@pytest.mark.rule("validation-28")
@pytest.mark.parametrize(
    ("inner", "told"),
    [
        ({"type": "text"}, "0.text.text: Field required"),
        (image(), "0.image.source.type: Field required"),
        ("x", "0: Input should be an object"),
        ({"type": "tool_reference"}, "0.tool_reference.tool_name: Field required"),
        (
            use("toolu_2"),
            "0.type: Input should be 'document', 'image', 'search_result', 'text' or 'tool_reference'",
        ),
    ],
)
def test_what_a_tool_result_holds_is_looked_at_too(ask: Asker, inner: object, told: str) -> None:
    said = ["Look.", assistant(use()), user(result(content=[inner]))]
    answer = ask.create(*said, tools=[tool()])
    assert (answer.status, answer.message) == (400, f"messages.2.content.0.tool_result.content.{told}")


@pytest.mark.rule("validation-28")
@pytest.mark.parametrize(
    ("block", "told"),
    [
        ({"type": "tool_use", "id": "x", "name": "look"}, "tool_use.input: Field required"),
        (
            {"type": "server_tool_use", "id": "x", "name": "web_search"},
            "server_tool_use.input: Field required",
        ),
        (
            {"type": "mcp_tool_use", "id": "x", "name": "y", "input": {}},
            "mcp_tool_use.server_name: Field required",
        ),
        ({"type": "web_search_tool_result"}, "web_search_tool_result.tool_use_id: Field required"),
        (
            {"type": "web_search_tool_result", "tool_use_id": "x"},
            "web_search_tool_result.content: Field required",
        ),
    ],
)
def test_a_request_for_a_tool_is_whole(ask: Asker, block: Fields, told: str) -> None:
    answer = ask.create("Look.", assistant(block), "So?")
    assert (answer.status, answer.message) == (400, f"messages.1.content.0.{told}")
