"""Tools and results of MCP servers as values: names, which tools are declared, search, and parsed results.

Names, descriptions, schemas and results come from outside and are not trusted: names are rewritten,
everything else has a size limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sevenfold.agent.tool import ToolOutput, ToolSpec
from sevenfold.core.canonical import digest
from sevenfold.core.errors import WireError
from sevenfold.core.json import JsonObject, freeze, write_json
from sevenfold.core.messages import Block, Image, Text
from sevenfold.core.tokens.estimation import estimate_text_tokens

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock


MCP_TOOL_PREFIX = "mcp__"
_MAX_NAME = 64
"""What every provider takes."""
MAX_TOOL_DESCRIPTION = 2_048
"""A tool that needs more is described in its server's instructions."""
MAX_FOUND_TOOLS = 8
"""More schemas at once would cost what leaving them out has saved."""

_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_WORD = re.compile(r"[a-z0-9]+")
_COMBINED = ("anyOf", "oneOf", "allOf", "not", "$ref")
"""A schema that begins with one of these is refused by some providers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTool:
    """A tool of a server's."""

    name: str
    """Ours: `mcp__server__tool`."""
    server: str
    own_name: str
    """The server's."""
    description: str
    schema: JsonObject

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.description, self.schema)

    @property
    def tokens(self) -> int:
        return round(estimate_text_tokens(write_json(self.spec.declared()).decode("utf-8", "replace")))

    @property
    def is_declarable(self) -> bool:
        """Whether a provider would take it in its list; any tool can be called by its name."""
        return self.schema.get("type") == "object" and not any(key in self.schema for key in _COMBINED)


@dataclass(frozen=True, slots=True)
class DeclaredTools:
    """Which tools stand in the list that is sent with every request."""

    declared: tuple[ServerTool, ...]
    deferred: Mapping[str, str]
    """The servers whose tools do not, with the reason."""


def make_tool_name(server: str, tool: str) -> str:
    """What we call a tool: letters every provider takes, and short enough for all; the same every time."""
    plain = f"{MCP_TOOL_PREFIX}{_FOREIGN.sub('_', server)}__{_FOREIGN.sub('_', tool)}"
    if len(plain) <= _MAX_NAME and plain == f"{MCP_TOOL_PREFIX}{server}__{tool}":
        return plain
    # What was changed or cut is told apart by what it was.
    mark = digest(f"{server}\n{tool}".encode("utf-8", "surrogatepass"))[:8]
    return f"{plain[: _MAX_NAME - 9]}_{mark}"


def make_server_tool(server: str, own_name: str, description: str, schema: JsonObject) -> ServerTool:
    """A tool as a server lists it, within our bounds."""
    # One that was cut before stays as it is: a listing is kept, and read again as if the server had sent it.
    is_short = len(description.removesuffix("…")) <= MAX_TOOL_DESCRIPTION
    cut = description if is_short else description[:MAX_TOOL_DESCRIPTION] + "…"
    return ServerTool(
        name=make_tool_name(server, own_name),
        server=server,
        own_name=own_name,
        description=cut,
        schema=schema,
    )


def choose_declared(listed: Mapping[str, Sequence[ServerTool] | None], budget_tokens: int) -> DeclaredTools:
    """Whole servers in the order of the settings while their schemas fit; None: not connected yet."""
    declared: list[ServerTool] = []
    deferred: dict[str, str] = {}
    left = budget_tokens
    for server, tools in listed.items():
        if tools is None:
            deferred[server] = "it is not connected yet"
            continue
        size = sum(tool.tokens for tool in tools)
        if size > left:
            deferred[server] = f"its schemas have {size:,} tokens, and {left:,} are left for them"
        elif not all(tool.is_declarable for tool in tools):
            deferred[server] = "not every schema is of a form that providers take"
        else:
            declared += tools
            left -= size
    return DeclaredTools(tuple(declared), deferred)


def find_declared_tools(tools: Iterable[JsonObject]) -> tuple[ToolSpec, ...]:
    """The tools of servers in a list that was sent before: a session goes on with exactly these."""
    specs: list[ToolSpec] = []
    for tool in tools:
        name, said, schema = tool.get("name"), tool.get("description"), tool.get("input_schema")
        if isinstance(name, str) and name.startswith(MCP_TOOL_PREFIX) and isinstance(schema, JsonObject):
            specs.append(ToolSpec(name, said if isinstance(said, str) else "", schema))
    return tuple(specs)


def find_tools(known: Iterable[ServerTool], query: str) -> tuple[ServerTool, ...]:
    """The tools that a query names, or whose name and description share most words with it."""
    tools = list(known)
    named = set(query.replace(",", " ").split())
    exact = [tool for tool in tools if tool.name in named or tool.own_name in named]
    if exact:
        return tuple(exact[:MAX_FOUND_TOOLS])
    words = set(_WORD.findall(query.lower()))
    scored = [(_score(tool, words), tool) for tool in tools]
    ranked = sorted((item for item in scored if item[0]), key=lambda item: (-item[0], item[1].name))
    return tuple(tool for _, tool in ranked[:MAX_FOUND_TOOLS])


def _score(tool: ServerTool, words: set[str]) -> int:
    name, said = set(_words(tool.name)), set(_words(tool.description))
    return 3 * len(words & name) + len(words & said)


def _words(text: str) -> list[str]:
    # createIssue has two words too.
    return _WORD.findall(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).lower().replace("_", " "))


def with_unique_names(tools: Iterable[ServerTool]) -> tuple[ServerTool, ...]:
    """The tools less those that a server lists twice."""
    return tuple({tool.name: tool for tool in tools}.values())


IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
MAX_IMAGE_CHARS = 5 * 1024 * 1024
"""In base64: providers refuse a request for a larger one, and with it the whole session."""


def parse_tool_result(result: CallToolResult) -> ToolOutput:
    """Text and images as they are, the rest in words. Of structured content the text is enough, if any is."""
    blocks = tuple(_block(item) for item in result.content)
    if result.structured_content is not None and not any(isinstance(block, Text) for block in blocks):
        blocks = (*blocks, Text(_as_json(result.structured_content)))
    return ToolOutput(_simplest(blocks), is_error=result.is_error)


def _block(item: ContentBlock) -> Block:
    from mcp_types import AudioContent, EmbeddedResource, ImageContent, ResourceLink, TextContent

    match item:
        case TextContent():
            return Text(item.text)
        case ImageContent():
            return _image(item.data, item.mime_type)
        case AudioContent():
            return Text(f"[audio of type {item.mime_type}, which is not shown]")
        case ResourceLink():
            return Text(f"[resource {item.name}: {item.uri}]")
        case EmbeddedResource():
            resource = item.resource
            text = getattr(resource, "text", None)
            if isinstance(text, str):
                return Text(f"[resource {resource.uri}]\n{text}")
            return Text(
                f"[resource {resource.uri} of type {resource.mime_type}, which is no text and not shown]"
            )


def _image(data: str, media_type: str) -> Block:
    if media_type not in IMAGE_TYPES:
        return Text(f"[image of type {media_type}, which is not shown]")
    if len(data) > MAX_IMAGE_CHARS:
        return Text(f"[image of {len(data):,} characters in base64, too large to be shown]")
    return Image(JsonObject({"type": "base64", "media_type": media_type, "data": data}))


def _as_json(value: object) -> str:
    try:
        return write_json(freeze(value)).decode("utf-8", "replace")
    except WireError as error:
        return f"[structured content that cannot be shown: {error}]"


def _simplest(blocks: Sequence[Block]) -> str | tuple[Block, ...]:
    """One string where all is text: what every provider and layer takes as it is."""
    texts = [block.text for block in blocks if isinstance(block, Text)]
    if len(texts) < len(blocks):
        return tuple(blocks)
    return "\n".join(texts) or "[no output]"


def count_output_bytes(output: ToolOutput) -> int:
    """How much a server has said, for the event that says that it did."""
    if isinstance(output.content, str):
        return len(output.content.encode("utf-8", "replace"))
    return sum(
        len(block.text.encode("utf-8", "replace"))
        if isinstance(block, Text)
        else len(str(block.source.get("data", "")))
        for block in output.content
        if isinstance(block, (Text, Image))
    )
