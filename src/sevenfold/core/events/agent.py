"""Events of the agent. Import them from `core.events`.

In order: agents and messages between them, turns, tools and permissions, sandboxed commands, forks and
writers, spend, then MCP servers, living documents and untrusted content.
"""

from __future__ import annotations

from dataclasses import dataclass

from sevenfold.core.messages import ToolUseId


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEnded:
    """An agent is over: how, and what it used."""

    name: str
    kind: str
    """`fresh`, `fork` or `teammate`."""
    outcome: str
    """`answered`, `interrupted`, `refused`, `failed`, `cancelled` or `out of rounds`."""
    rounds: int
    read_tokens: int
    written_tokens: int
    fresh_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class AgentStarted:
    """An agent was started."""

    name: str
    kind: str
    is_background: bool
    """Nobody waits for it: its end is told as a message."""


@dataclass(frozen=True, slots=True)
class DefinitionSkipped:
    """A file that should define an agent cannot be used as it is."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class DefinitionLimited:
    """Part of an agent's definition that came with the repository was ignored."""

    path: str
    part: str
    """`model`, `tools`, `mode` or `memory`."""
    reason: str


@dataclass(frozen=True, slots=True)
class MailSkipped:
    """A mailbox could not be read or written for once; what waits there keeps waiting."""

    mailbox: str
    reason: str


@dataclass(frozen=True, slots=True)
class PeerDismissed:
    """Somebody at a session's socket was not listened to, or what they sent could not be taken."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class ProgressSkipped:
    """What an agent is doing could not be said in a line, for once."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class WorktreeKept:
    """An agent's worktree stays, because something was changed in it or git would not remove it."""

    path: str
    branch: str
    reason: str


@dataclass(frozen=True, slots=True)
class FrameLost:
    """What a session had been sent with could not be read: it is put together anew, and written to the cache
    anew."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class HooksIgnored:
    """Hooks of a file, or a part of them, are not used."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class ToolFailed:
    """A tool broke in a way of its own: the model was told so, and the turn goes on."""

    tool: str
    tool_use_id: ToolUseId
    reason: str


@dataclass(frozen=True, slots=True)
class AnswerTruncated:
    """The last answer of a turn was cut short, and the model had been asked to go on this often before."""

    continuations: int


@dataclass(frozen=True, slots=True)
class LoopDetected:
    """The model made the same call this often in a turn, and it failed each time; or this many of its answers
    held only calls that failed."""

    tool: str
    count: int
    is_stopped: bool
    """The turn ended: a person said so, or nobody was there to ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryScheduled:
    """A request to a model failed for now, and is sent again after a wait."""

    model: str
    retry: int
    """The first is 1."""
    of: int
    """How many there are at most."""
    seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class TurnInterrupted:
    """A turn was cut short; what an unfinished answer cost is in no bill of ours."""

    session: str
    rounds: int
    """Answers that had come by then."""
    open_calls: int
    """Tool calls that were under way or waiting, and got a result that says so."""


@dataclass(frozen=True, slots=True)
class RuleKept:
    """What was allowed for always was written to a person's settings for the project."""

    rule: str
    path: str
    git_note: str
    """Why git would list the file; empty: it does not."""


@dataclass(frozen=True, slots=True)
class RuleLost:
    """What was allowed for always could not be kept: it holds for this session alone."""

    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class SkillSkipped:
    """A skill was found and is not offered."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class ToolStateLost:
    """What a tool keeps of a session, such as the todo list, could not be read or written: a session that is
    resumed later may lack it."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class GuardedLeft:
    """A sandboxed command made a file that programs obey, and it could not be moved aside: it is in force."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class GuardedMoved:
    """A sandboxed command made a file that programs obey, such as a Git hook: it was moved aside."""

    path: str
    moved_to: str


@dataclass(frozen=True, slots=True)
class VariablesHeld:
    """Environment variables that look like secrets are not given to sandboxed commands. Told once."""

    names: str


@dataclass(frozen=True, slots=True)
class SandboxFailed:
    """Commands cannot be sandboxed here: those that must be are refused; a person is asked about others."""

    profile: str
    """`read-only` or `workspace`."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkEnded:
    """A fork is over: how, and what it used."""

    kind: str
    outcome: str
    """`answered`, `failed`, `cancelled`, or `out of rounds`."""
    rounds: int
    read_tokens: int
    written_tokens: int
    fresh_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class ForkStarted:
    """A side run begins on the session's own prefix."""

    kind: str
    messages: int


@dataclass(frozen=True, slots=True)
class ToolDenied:
    """A tool call was not allowed: by a fork's brief, a rule, a mode, a hook or a person."""

    who: str
    tool: str
    tool_use_id: ToolUseId
    reason: str


@dataclass(frozen=True, slots=True)
class WriterFailed:
    """A background job failed or had to be stopped: its work is lost, and nothing else is."""

    writer: str
    reason: str


@dataclass(frozen=True, slots=True)
class BillLost:
    """An answer came without a bill, or with one that cannot be read: what it cost is not known, and how full
    the window is remains an estimate. Told once for each reason."""

    model: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCharged:
    """A model call of background work was paid for."""

    kind: str
    model: str
    tokens: int
    read: int
    micro_usd: int | None
    """None: the model's price is not known."""


@dataclass(frozen=True, slots=True)
class CallRefused:
    """Background work wanted to ask a model and may not, for a cap, a pause or the switch; it is left out."""

    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class KindPaused:
    """A kind of background work failed too often in a row and rests until a time."""

    kind: str
    strikes: int
    until: str
    reason: str


@dataclass(frozen=True, slots=True)
class ModelUnknown:
    """A model that no table describes: cautious values stand in. What it costs is known only if the price
    list has it."""

    model: str
    assumed_window_tokens: int


@dataclass(frozen=True, slots=True)
class PriceUnknown:
    """A model that settings describe has no price, there or in the table: nothing it costs can be told."""

    model: str


@dataclass(frozen=True, slots=True)
class SpendStateLost:
    """What background work had spent so far could not be read or written; caps count from what is known."""

    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class DocDropped:
    """A living document is no longer kept up to date."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class DocSkipped:
    """A living document was due and was left as it is."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class DocTracked:
    """A file that was read says that it is a living document, and is kept up to date from now on."""

    path: str
    title: str


@dataclass(frozen=True, slots=True)
class DocUpdated:
    """A living document was brought up to date."""

    path: str
    edits: int


@dataclass(frozen=True, slots=True)
class McpConnected:
    """An MCP server answered, and its tools can be called."""

    server: str
    tools: int
    milliseconds: int


@dataclass(frozen=True, slots=True)
class McpDeferred:
    """Tools of an MCP server are not in the list of tools: the model finds and calls them by name."""

    server: str
    reason: str


@dataclass(frozen=True, slots=True)
class McpFailed:
    """An MCP server could not be reached, or its connection ended: its tools answer with an error."""

    server: str
    reason: str
    failures_in_row: int
    retry_seconds: int


@dataclass(frozen=True, slots=True)
class McpSkipped:
    """An MCP server, or one of its tools, is not used."""

    server: str
    reason: str


@dataclass(frozen=True, slots=True)
class UntrustedEntered:
    """What somebody outside says went into the context: none of it may be remembered as the user's word."""

    kind: str
    """Where from: `mcp`, `web`."""
    name: str
    """The tool or the address."""
    size_bytes: int
