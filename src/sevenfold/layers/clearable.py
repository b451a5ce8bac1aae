"""Which tools' results may be cleared (SPEC C1): those that can be had again by calling the tool again."""

from __future__ import annotations

CLEARABLE = frozenset(
    {
        # read
        "read", "readfile", "view", "viewfile", "openfile", "notebookread", "cat",
        # shell
        "bash", "shell", "bashoutput", "execcommand", "exec", "runcommand", "terminal", "localshell",
        # grep and glob
        "grep", "search", "searchfiles", "ripgrep", "glob", "find", "findfiles", "ls", "list", "listdir",
        "listfiles",
        # the web
        "websearch", "webfetch", "fetch",
        # edit and write
        "edit", "multiedit", "write", "writefile", "notebookedit", "applypatch", "strreplace", "create",
        "strreplacebasededittool", "texteditor",
    }
)  # fmt: skip
"""Names as agents spell them, in lower case and without separators."""


def is_clearable(tool: str) -> bool:
    """Whether old results of this tool may go. One that nobody here knows, an MCP server's above all, may not
    be asked again without harm."""
    if tool.startswith("mcp__"):
        return False
    return tool.replace("_", "").replace("-", "").lower() in CLEARABLE
