"""The tools, prompts and resources of the server. Every text is constant.

Agents put descriptions into the part of a prompt that is cached, so a test pins each byte: whoever changes
one changes the prefix of every user's next session.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sevenfold.integrations.mcp_server.protocol import Wire

INSTRUCTIONS = (
    "Sevenfold remembers this project across sessions and agents. Use recall before work that an earlier "
    "decision or preference may govern. Use remember when the user asks you to remember something, and pass "
    "their whole sentence in their words. Check what a memory claims before you act on it."
)

INDEX_URI = "sevenfold://memory/MEMORY.md"
MEMORY_URI_PREFIX = "sevenfold://memory/"
MARKDOWN = "text/markdown"
MEMORY_TYPES = ("user", "feedback", "project", "reference")


class McpParameter:
    """One argument of a tool."""

    def __init__(
        self,
        name: str,
        description: str,
        *,
        most: int = 0,
        least: int = 1,
        is_number: bool = False,
        required: bool = False,
        choices: tuple[str, ...] = (),
    ) -> None:
        self.name, self.description, self.required, self.choices = name, description, required, choices
        self.is_number = is_number
        """A whole number; else a text."""
        self.least, self.most = least, most
        """The bounds of a number. Of a text, `most` is the number of characters."""

    def schema(self) -> Wire:
        if self.is_number:
            return {
                "type": "integer",
                "description": self.description,
                "minimum": self.least,
                "maximum": self.most,
            }
        bound: Wire = {"enum": list(self.choices)} if self.choices else {"maxLength": self.most}
        return {"type": "string", "description": self.description, **bound}


class McpEntry:
    """A tool: its name is the name of the operation that carries it out."""

    def __init__(
        self,
        name: str,
        title: str,
        description: str,
        parameters: tuple[McpParameter, ...],
        *,
        is_read_only: bool = True,
    ) -> None:
        self.name, self.title, self.description = name, title, description
        self.parameters, self.is_read_only = parameters, is_read_only

    def listed(self, version: str) -> Wire:
        """As a client of that version wants it listed."""
        tool: Wire = {
            "name": self.name,
            "description": self.description,
            "inputSchema": {
                "type": "object",
                "properties": {parameter.name: parameter.schema() for parameter in self.parameters},
                "required": [parameter.name for parameter in self.parameters if parameter.required],
                "additionalProperties": False,
            },
        }
        if version >= "2025-03-26":
            tool["annotations"] = {
                "title": self.title,
                "readOnlyHint": self.is_read_only,
                "destructiveHint": False,
                "openWorldHint": False,
            }
        if version >= "2025-06-18":
            tool["title"] = self.title
        return tool


_QUERY = 2_000
"""Characters of a query: a long prompt. More finds nothing else."""

MCP_TOOLS = (
    McpEntry(
        "recall",
        "Recall memories",
        "Find what is remembered of this project, the user's preferences and past decisions that bear on a "
        "question or a task. Returns the memories that fit, with who said each; nothing if none fits.",
        (
            McpParameter("query", "The question or the task, in plain words.", most=_QUERY, required=True),
            McpParameter("limit", "At most so many memories; 5 if left out.", most=20, is_number=True),
        ),
    ),
    McpEntry(
        "remember",
        "Remember",
        "Remember something for later sessions, when the user asks for it. Pass the user's whole sentence in "
        "their words and language: that is remembered at once. Anything else waits until the user accepts it "
        "with `sevenfold memory review`.",
        (
            McpParameter("text", "What to remember, with absolute dates.", most=8_000, required=True),
            McpParameter("name", "The topic in lower case, such as release-steps.", most=80),
            McpParameter("description", "One line that says when it matters.", most=300),
            McpParameter("type", "What it is about; project if left out.", choices=MEMORY_TYPES),
        ),
        is_read_only=False,
    ),
    McpEntry(
        "search_sessions",
        "Search past sessions",
        "Search every past session on this machine, of this and other agents, for turns that mention "
        "something. Returns excerpts with project, date and the command that opens the session.",
        (
            McpParameter("query", "Words that the turn contains.", most=_QUERY, required=True),
            McpParameter("limit", "At most so many turns; 10 if left out.", most=50, is_number=True),
        ),
    ),
    McpEntry(
        "read_result",
        "Read a stored tool result",
        "Read a tool result that was stored on disk because it was too long for the context, whole or in "
        "part. Its preview names the id or the path.",
        (
            McpParameter("id", "The id or the path that the preview names.", most=1_000, required=True),
            McpParameter(
                "offset", "The first byte to read; 0 if left out.", least=0, most=10**12, is_number=True
            ),
            McpParameter("limit", "At most so many bytes.", most=49_152, is_number=True),
        ),
    ),
    McpEntry(
        "spend",
        "Show the spend",
        "Show what Sevenfold's own background work in this account spent on model calls in the last hour and "
        "day, by kind, and its limits.",
        (),
    ),
)


class McpPrompt:
    """A prompt that a person can choose: it brings the answer of a tool into the conversation."""

    def __init__(
        self,
        name: str,
        title: str,
        description: str,
        *,
        operation: str,
        lead: str,
        argument: str = "",
        hint: str = "",
    ) -> None:
        self.name, self.title, self.description, self.operation = name, title, description, operation
        self.lead = lead
        """What stands before the answer."""
        self.argument, self.hint = argument, hint
        """The tool's argument that the person fills in, and what it means; empty for none."""

    def listed(self, version: str) -> Wire:
        prompt: Wire = {"name": self.name, "description": self.description}
        if version >= "2025-06-18":
            prompt["title"] = self.title
        if self.argument:
            prompt["arguments"] = [{"name": self.argument, "description": self.hint, "required": True}]
        return prompt


MCP_PROMPTS = (
    McpPrompt(
        "recall",
        "Recall memories",
        "Bring the memories that bear on a question into the conversation.",
        operation="recall",
        argument="query",
        hint="The question or the task.",
        lead="These memories bear on: {value}",
    ),
    McpPrompt(
        "search",
        "Search past sessions",
        "Bring turns of past sessions that mention something into the conversation.",
        operation="search_sessions",
        argument="query",
        hint="Words that the turn contains.",
        lead="Past sessions say this about: {value}",
    ),
    McpPrompt(
        "spend",
        "Show the spend",
        "Show what background work of Sevenfold spent.",
        operation="spend",
        lead="Tell me in short what this says.",
    ),
)


def list_templates(version: str) -> list[Wire]:
    """The form of a memory's address."""
    template: Wire = {
        "uriTemplate": f"{MEMORY_URI_PREFIX}{{name}}",
        "name": "memory",
        "description": "One memory of this project, by its name in the index.",
        "mimeType": MARKDOWN,
    }
    if version >= "2025-06-18":
        template["title"] = "Memory"
    return [template]


def find_mcp_tool(name: str) -> McpEntry | None:
    return next((tool for tool in MCP_TOOLS if tool.name == name), None)


def find_mcp_prompt(name: str) -> McpPrompt | None:
    return next((prompt for prompt in MCP_PROMPTS if prompt.name == name), None)


def check_arguments(tool: McpEntry, given: Wire) -> str | None:
    """What is wrong with the arguments of a call, in a sentence that a model can act on."""
    names = {parameter.name: parameter for parameter in tool.parameters}
    unknown = next((name for name in given if name not in names), None)
    if unknown is not None:
        return f"{tool.name} has no argument {unknown[:80]!r}; it takes {', '.join(names)}"
    for parameter in tool.parameters:
        if parameter.name in given:
            wrong = _check_value(parameter, given[parameter.name])
        else:
            wrong = "is missing" if parameter.required else None
        if wrong:
            return f"{parameter.name} {wrong}. {parameter.description}"
    return None


def _check_value(parameter: McpParameter, value: object) -> str | None:
    if parameter.is_number:
        fits = (
            isinstance(value, int)
            and not isinstance(value, bool)
            and parameter.least <= value <= parameter.most
        )
        return None if fits else f"is no whole number from {parameter.least:,} to {parameter.most:,}"
    if not isinstance(value, str) or not value.strip():
        return "is no text, or is empty"
    if parameter.choices:
        return None if value in parameter.choices else f"is none of {', '.join(parameter.choices)}"
    return None if len(value) <= parameter.most else f"is longer than {parameter.most:,} characters"
