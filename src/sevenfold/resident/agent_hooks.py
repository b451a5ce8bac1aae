"""What the hooks of other agents answer: Claude Code and Codex hand in the same events as JSON.

- `SessionStart`: the index of memories as context, and a pull of the team's news.
- `UserPromptSubmit`: the memories that the prompt is about, as context.
- `PreToolUse`: rules that apply to the call. A call that changes something is stopped until the rule was
  read; one that only reads gets the text as context.
- `PostToolUse`: which foreign words came in, and which memories the agent wrote itself. With `shows_rules`
  also rules that apply to the call, for agents whose calls cannot be stopped.
- `PreCompact`: what a summary has to keep.
- `Stop`, `SessionEnd`: the transcript is put in the queue of `extraction`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sevenfold.core.clock import Clock
from sevenfold.core.errors import SevenfoldError
from sevenfold.core.events import Emit
from sevenfold.core.json import JsonObject, freeze_object, write_json
from sevenfold.core.memories import INDEX_FILE, TEAM_PREFIX, MemoryUse, Origin, Taint, join_taint, read_memory
from sevenfold.core.messages import Message, Text, ToolUse, ToolUseId
from sevenfold.core.settings import PlaceSettings
from sevenfold.core.text.globs import find_shell_paths, find_text_paths
from sevenfold.core.text.safe_text import escape_reminder_tags, render_reminder, truncate_bytes
from sevenfold.core.tool_kinds import (
    PATH_KEYS,
    command_of,
    find_effect,
    find_shown,
    first_text,
    own_tool_name,
    patch_of,
)
from sevenfold.layers.context import CONTEXT_HEADINGS
from sevenfold.layers.memory.recall.policy import (
    RecallFacts,
    RecallSettings,
    choose_recalled,
    render_recalled_memories,
)
from sevenfold.layers.memory.rule_policy import (
    DueRule,
    MemoryRule,
    ProposedAction,
    find_met_condition,
    is_acknowledged,
    render_rule_gate,
    render_rule_hold,
    render_rule_note,
)
from sevenfold.layers.memory.trust.taint import ConversationSources, find_tool_taint, split_passages
from sevenfold.layers.memory.trust.taint_changes import attribute_change
from sevenfold.resident.agent_sessions import AgentConversation, AgentSession, ShownRule
from sevenfold.resident.projects import OpenProject
from sevenfold.store.memory.index_text import drop_index_entries
from sevenfold.store.memory.sidecars import UseStore

MAX_CONTEXT_BYTES = 9_500
"""Of what a hook adds: agents cut what is over 10,000 characters, or put it into a file."""

MAX_RULE_HOLDS = 3
"""Of one rule. Something else keeps the call coming back then, and it must not wait for ever."""

_SAME_ANSWER = timedelta(seconds=2)
"""Within which a second call may be of the same answer of the model, if the transcript does not tell."""

_PLAIN_EFFECTS = frozenset(["read", "list", "search", "wait", "memory"])
"""Calls that change nothing: no harm is done if they run before the rule is read."""

_LOOKING = frozenset(["read", "list", "search"])


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCall:
    """One call of a hook: which event, of which session, in which project."""

    event: str
    given: JsonObject
    project: OpenProject
    session: AgentSession
    conversation: AgentConversation
    clock: Clock
    emit: Emit
    do_later: Callable[[Callable[[], None]], None]
    is_late: Callable[[], bool]
    """Whether the agent has gone on without an answer: what is found is then kept for its next hook."""

    def text(self, key: str) -> str:
        value = self.given.get(key)
        return value if isinstance(value, str) else ""


def answer_hook(call: HookCall) -> str:
    """What the hook prints; empty: nothing."""
    work = _EVENTS.get(call.event)
    return work(call) if work is not None and call.project.has_memory else ""


def _start_session(call: HookCall) -> str:
    session = call.session
    if call.text("source") in ("compact", "clear", "startup"):
        session.forget_view()
    waiting = call.project.memory.waiting()
    many = f"{len(waiting)} changes of memory wait" if len(waiting) > 1 else "1 change of memory waits"
    notice = f"{many} for you: sevenfold memory review" if waiting else ""
    return _render(call, _take_index(call), notice=notice)


def _take_index(call: HookCall) -> str:
    """The index, unless the session has it: from us, or from Claude Code, whose folder may be the same."""
    session, project = call.session, call.project
    if session.has_index:
        return ""
    session.has_index = True
    if project.workspace.settings.of(PlaceSettings).claude_memory and _is_claude(call):
        return ""
    found = project.read_index()
    if not found.text.strip():
        return ""
    shown = truncate_bytes(escape_reminder_tags(found.text.rstrip()), MAX_CONTEXT_BYTES // 2)
    where = escape_reminder_tags(str(project.memory.path / INDEX_FILE))
    return render_reminder(f"# {CONTEXT_HEADINGS['memory']} ({where})\n{shown}")


def _is_claude(call: HookCall) -> bool:
    return "/.claude/" in call.text("transcript_path") or "CLAUDE" in call.text("agent").upper()


def _take_prompt(call: HookCall) -> str:
    prompt, session, project = call.text("prompt"), call.session, call.project
    if not prompt.strip():
        return ""
    session.add_prompt(prompt)
    settings = project.workspace.settings.of(RecallSettings)
    parts = [_take_index(call)]
    if settings.enabled:
        facts = RecallFacts(frozenset(session.recalled), sum(session.recalled.values()))
        finder, now = project.finder, call.clock.now()
        chosen = choose_recalled(finder.find(prompt, settings.candidates), facts, settings)
        memories, keys = finder.take(chosen), [one.key for one in chosen]
        if memories:
            limit = min(settings.file_bytes, MAX_CONTEXT_BYTES // len(memories))
            parts.append(render_recalled_memories(memories, now, limit))
            sizes = {one.key: min(one.size_bytes, limit) for one in chosen}
            session.recalled = {**session.recalled, **sizes}
            call.do_later(lambda: finder.count(keys, now))
    return _render(call, *parts)


# Rules before a call.


def _check_call(call: HookCall) -> str:
    use = _read_use(call)
    due = _find_due(call, use)
    if not due:
        return _render(call)
    if _is_plain(use):
        return _render(call, _note_rules(call, use))
    before = call.session.rules
    reason = _hold(call, due, use) or _gate(call, due, use)
    if not reason:
        return _render(call)
    if call.is_late():  # the call has run: nobody has read the rule
        call.session.rules = before
        return ""
    return _render_denial(reason)


def _read_use(call: HookCall) -> ToolUse:
    given = call.given.get("tool_input")
    return ToolUse(
        ToolUseId(call.text("tool_use_id") or call.text("call_id")),
        call.text("tool_name"),
        given if isinstance(given, JsonObject) else JsonObject(),
    )


def _find_due(call: HookCall, use: ToolUse) -> list[DueRule]:
    rules = call.project.rules.read()
    if not rules:
        return []
    action = _describe_action(use, call.project.workspace.root, Path(call.text("cwd") or "/"))
    reasons = ((rule, find_met_condition(rule.conditions, action)) for rule in rules)
    return [DueRule(rule, reason) for rule, reason in reasons if reason is not None]


def _describe_action(use: ToolUse, root: Path, cwd: Path) -> ProposedAction:
    effect, command = find_effect(use), command_of(use.input)
    named = [path for key in PATH_KEYS if (path := first_text(use.input, (key,)))]
    found = find_shell_paths(command or patch_of(use.input))
    spelled = (*named, *find_text_paths(command), *found.patched)
    written = effect in ("edit", "write") or bool(found.written or found.patched)
    return ProposedAction(
        tools=(own_tool_name(use.name), use.name),
        paths=tuple(_inside((str(cwd / path) for path in spelled), root)),
        command=command,
        changes_files=written,
        plans=effect == "plan",
    )


def _inside(paths: Iterable[str], root: Path) -> list[str]:
    """Those that lie in the project, from there on."""
    normal = (os.path.normpath(path) for path in dict.fromkeys(paths))
    return [path[len(str(root)) + 1 :] for path in normal if path.startswith(f"{root}/")]


def _is_plain(use: ToolUse) -> bool:
    effect = find_effect(use)
    if effect == "run":
        return find_shown(use).effect in _LOOKING
    return effect in _PLAIN_EFFECTS or (effect == "plan" and own_tool_name(use.name) != "plan")


def _is_shown(session: AgentSession, rule: MemoryRule) -> bool:
    shown = session.rules.get(rule.memory)
    return shown is not None and (shown.digest == _digest(rule) or shown.times >= MAX_RULE_HOLDS)


def _hold(call: HookCall, due: Sequence[DueRule], use: ToolUse) -> str:
    """Why the call has to wait: rules that were not shown yet, or only to another call of the same answer."""
    session, limit = call.session, call.project.rules.settings.at_once
    fresh = [one for one in due if not _is_shown(session, one.rule)][:limit]
    beside = [one.rule for one in due if one not in fresh and _is_beside(call, one.rule, use)]
    if not fresh and not beside:
        return ""
    for one in fresh:
        _show(call, one, use, is_held=True)
    for rule in beside:
        session.rules[rule.memory].times += 1
    return render_rule_hold(fresh, beside)


def _is_beside(call: HookCall, rule: MemoryRule, use: ToolUse) -> bool:
    """Whether the rule was shown in answer to a call that the model made together with this one."""
    shown = call.session.rules.get(rule.memory)
    if shown is None or not shown.is_pending or shown.times >= MAX_RULE_HOLDS or shown.tool_use == use.id:
        return False
    if call.clock.uptime() - shown.at > _SAME_ANSWER:
        return False
    call.conversation.update()
    return not call.conversation.has_result(shown.tool_use)


def _gate(call: HookCall, due: Sequence[DueRule], use: ToolUse) -> str:
    """Everything was read: a gate opens once the model has acknowledged the rule in its own words."""
    shut: list[MemoryRule] = []
    for one in due:
        shown = call.session.rules[one.rule.memory]
        if one.rule.is_gate and not shown.is_acknowledged:
            call.conversation.update()
            if not is_acknowledged(call.conversation.find_words(use.id), one.rule.names):
                shut.append(one.rule)
                continue
            shown.is_acknowledged = True
            _count(call, MemoryUse(one.rule.memory, "acknowledged"))
        if shown.is_pending:
            shown.is_pending = False
            _count(call, MemoryUse(one.rule.memory, "unchanged"))
    return render_rule_gate(shut) if shut else ""


def _show(call: HookCall, due: DueRule, use: ToolUse, *, is_held: bool) -> None:
    before = call.session.rules.get(due.rule.memory)
    shown = ShownRule(
        digest=_digest(due.rule),
        tool_use=use.id,
        at=call.clock.uptime(),
        times=before.times + 1 if before else 1,
        is_pending=is_held,
    )
    call.session.rules = {**call.session.rules, due.rule.memory: shown}
    _count(call, MemoryUse(due.rule.memory, "shown"))


def _count(call: HookCall, use: MemoryUse) -> None:
    state, now = call.project.workspace.project.memory_state, call.clock.now()
    call.do_later(lambda: UseStore(state, emit=call.emit).add([use], now))


def _digest(rule: MemoryRule) -> str:
    return hashlib.sha256(rule.text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


# After a call.


def _take_result(call: HookCall) -> str:
    use = _read_use(call)
    taint = find_tool_taint(use)
    if taint in ("web", "mcp") and taint not in call.session.taints:
        call.session.taints = (*call.session.taints, taint)
    if find_effect(use) in ("edit", "write"):
        _take_edit(call, first_text(use.input, PATH_KEYS))
    return _render(call, _note_rules(call, use) if call.given.get("shows_rules") is True else "")


def _note_rules(call: HookCall, use: ToolUse) -> str:
    """Rules that apply to a call that nobody could stop: the model reads them with its result."""
    fresh = [one for one in _find_due(call, use) if not _is_shown(call.session, one.rule)]
    for one in fresh:
        _show(call, one, use, is_held=False)
    return render_rule_note(fresh) if fresh else ""


def _take_edit(call: HookCall, path: str) -> None:
    """A memory that the agent wrote itself: recorded as its own at once, and judged by what was said."""
    memory = call.project.memory
    folder, real = os.path.realpath(memory.path), os.path.realpath(path) if path else ""
    if not real.startswith(f"{folder}{os.sep}") or not real.endswith(".md"):
        return
    key = os.path.relpath(real, folder).replace(os.sep, "/")
    if key.startswith(TEAM_PREFIX):
        return
    if key == INDEX_FILE:
        _settle_index(call)
        return
    try:
        text = Path(real).read_text(encoding="utf-8")
        stored, now = memory.find(key), read_memory(key, text)
        sources = ConversationSources(split_passages(list_messages_of(call.conversation, call.session)))
        found = attribute_change(stored.memory if stored else None, now, sources)
        origin = Origin(
            who="agent",
            why="another agent wrote it",
            session=call.session.session[:100],
            said_by=found.said_by,
            taint=found.taint | (join_taint(stored.origin) if stored else frozenset[Taint]()),
            evidence=found.evidence,
        )
        memory.record_edit([key], origin)
    except (SevenfoldError, OSError, UnicodeDecodeError):
        return  # it is noticed as an edit, and waits for a person


def _settle_index(call: HookCall) -> None:
    """Lines of the index are made from the memories. An agent that writes some for its own memories has said
    nothing new by that, and nobody is asked about it."""
    memory = call.project.memory
    edits = [one for one in memory.notice() if [change.key for change in one.changes] == [INDEX_FILE]]
    keys = [name for name in os.listdir(memory.path) if name.endswith(".md")]
    shown = _list_own_lines(call.project.read_index().text, keys)
    for edit in edits:
        if _list_own_lines(edit.changes[0].text or "", keys) == shown:
            memory.reject(edit.id, "lines of the index are made from the memories", who="agent")


def _list_own_lines(text: str, keys: Sequence[str]) -> list[str]:
    """What an index says beside the lines of memories."""
    return [line for line in drop_index_entries(text, keys).split("\n") if line.strip()]


def list_messages_of(conversation: AgentConversation, session: AgentSession) -> list[Message]:
    """What was said in a session: its transcript, and prompts that are not in there yet."""
    conversation.update()
    messages = list(conversation.snapshot.view)
    blocks = (block for one in messages if one.role == "user" for block in one.blocks)
    said = {block.text for block in blocks if isinstance(block, Text)}
    return [*messages, *(Message("user", text) for text in session.prompts if text not in said)]


# Before a compaction.


def _keep_for_summary(call: HookCall) -> str:
    """Plain text, which the agent adds to the instructions of its summary."""
    rules, recalled = sorted(call.session.rules), sorted(call.session.recalled)
    lines = [
        "Keep in the summary, in the user's own words, what they asked for, decided, corrected and forbade."
    ]
    if rules:
        lines.append(f"Rules of this project that were shown and still apply: {', '.join(rules)}.")
    if recalled:
        named = ", ".join(recalled)
        lines.append(f"Memories that were shown can be recalled again; name them only: {named}.")
    call.session.forget_view()
    return truncate_bytes("\n".join(lines), MAX_CONTEXT_BYTES)


def _end_turn(call: HookCall) -> str:
    """The rest is done by the queue."""
    if call.project.workspace.settings.of(PlaceSettings).claude_memory:
        _settle_index(call)
    return ""


def _end_session(call: HookCall) -> str:
    """The transcript is complete: what the person said is not kept a second time."""
    call.session.prompts = ()
    return _end_turn(call)


_EVENTS: dict[str, Callable[[HookCall], str]] = {
    "SessionStart": _start_session,
    "UserPromptSubmit": _take_prompt,
    "PreToolUse": _check_call,
    "PostToolUse": _take_result,
    "PreCompact": _keep_for_summary,
    "Stop": _end_turn,
    "SessionEnd": _end_session,
}
HOOK_EVENTS = tuple(_EVENTS)


def _render(call: HookCall, *parts: str, notice: str = "") -> str:
    """The JSON of an answer with this context; what was too late for the hook before comes first."""
    session = call.session
    text = "\n\n".join(part for part in (session.late, *parts) if part)
    if call.is_late():
        session.late = truncate_bytes(text, MAX_CONTEXT_BYTES)
        return ""
    session.late = ""
    answer: dict[str, object] = {}
    if notice:
        answer["systemMessage"] = notice
    if text:
        shown = truncate_bytes(text, MAX_CONTEXT_BYTES)
        answer["hookSpecificOutput"] = {"hookEventName": call.event, "additionalContext": shown}
    return write_json(freeze_object(answer)).decode() if answer else ""


def _render_denial(reason: str) -> str:
    output = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": truncate_bytes(reason, MAX_CONTEXT_BYTES),
    }
    return write_json(freeze_object({"hookSpecificOutput": output})).decode()
