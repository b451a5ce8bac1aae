"""What the resident process can be asked for. The same functions run in any other process with `run_once`.

An operation takes a JSON object and returns one. All but `status` take `cwd`, a folder of the project.

- `recall`: `prompt`, `limit`; returns `memories` and `text`, as an agent is shown them.
- `remember`: `content`, `name`, `description`, `type`, `applies_to`, `session`; returns `status`, which is
  `remembered`, `waiting` (for review), `known` or `refused`, with `key` and `message`.
- `search_sessions`: `query`, `project`, `since`, `limit`; returns `hits` and `is_busy`.
- `read_result`: `path` or `id` of a stored tool result, `offset`, `limit`; returns `text`, `next_offset`.
- `spend`: what background work spent, as `sevenfold spend --json` says it.
- `memory_index`, `memory_read` (`key`): the index, and one memory.
- `hook`: `event`, `agent` and `input`, the JSON that an agent hands to its hook; returns the hook's output.
- `status`: the process itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import TypeAlias

from sevenfold.core import __version__
from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import FileMissing, InputError
from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.fields import write_fields
from sevenfold.core.json import (
    JsonObject,
    freeze_object,
    get_choice,
    get_integer,
    get_string,
    read_object,
    write_json,
)
from sevenfold.core.memories import INDEX_FILE, MEMORY_KINDS, Origin
from sevenfold.core.messages import Message
from sevenfold.core.text.stems import make_slug, split_sentences, truncate_words
from sevenfold.layers.memory.extraction.gate import (
    MAX_DRAFT_DESCRIPTION_CHARS,
    GateContext,
    MemoryDraft,
    RefusedDraft,
    check_draft,
)
from sevenfold.layers.memory.recall.policy import (
    RecalledMemory,
    RecallFacts,
    RecallSettings,
    choose_recalled,
    render_recalled_memories,
)
from sevenfold.layers.memory.trust.taint import ConversationSources, split_passages
from sevenfold.layers.tool_results.spill import MAX_RESULT_BYTES, find_stored_result, read_stored_result
from sevenfold.resident.agent_hooks import HOOK_EVENTS, HookCall, answer_hook, list_messages_of
from sevenfold.resident.agent_sessions import AgentConversation, AgentSession, read_recent_messages
from sevenfold.resident.client import PROTOCOL, leave_message, list_messages, log_failure, select_environ
from sevenfold.resident.extraction import (
    PULL_PAUSE,
    extract_memories,
    keep_agent_session,
    load_agent_session,
    make_session_writer,
    prune_agent_sessions,
    pull_team_memory,
)
from sevenfold.resident.projects import OpenProject, ProjectPool
from sevenfold.session.budget import SPEND_DAY, SpendSettings
from sevenfold.session.governor import Governor, SpendStore, describe_spend
from sevenfold.session.opening import Workspace, WorkspaceOptions
from sevenfold.store.files.folder import check_memory_key
from sevenfold.store.foreign.transcripts import find_own_transcripts, find_transcripts, list_default_folders
from sevenfold.store.memory.changes import Write
from sevenfold.store.memory.plan import ALREADY_ASKED
from sevenfold.store.project.settings_files import find_user_home
from sevenfold.store.session_index.finder import SessionQuery, describe_hit
from sevenfold.store.session_index.index import SessionIndex

Arguments: TypeAlias = JsonObject
Answer: TypeAlias = dict[str, object]
Environ: TypeAlias = Mapping[str, str]

QUEUED_EVENTS = ("Stop", "SessionEnd")
"""Whose work takes longer than an agent waits."""

MAX_SOURCES = 3
"""Sessions in which the words of a memory are looked for, where nobody says which one asks."""

SOURCE_AGE = timedelta(hours=12)
"""Of a transcript that may belong to the session that asks."""

_MAX_PROMPT_CHARS = 100_000


class ResidentOperations:
    """The operations over projects that stay open. Every method blocks; for any thread.

    `asks_model`: whether learning may ask the model that the user has named. Only a process that holds no
    keys of an agent does: the resident one, and that of the proxy.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        emit: Emit = ignore_event,
        environ: Environ | None = None,
        *,
        asks_model: bool = False,
    ) -> None:
        self._clock, self._emit, self._asks_model = clock or SystemClock(), emit, asks_model
        self.projects = ProjectPool(self._clock, emit)
        self._started = self._clock.uptime()
        self._environ = select_environ(os.environ if environ is None else environ)
        self._count = 0
        self._later: list[Callable[[], None]] = []
        self._lock = Lock()
        self._operations: dict[str, Callable[[Arguments, Environ], Answer]] = {
            "recall": self._recall,
            "remember": self._remember,
            "search_sessions": self._search_sessions,
            "read_result": self._read_result,
            "spend": self._spend,
            "memory_index": self._read_index,
            "memory_read": self._read_memory,
            "hook": self._run_hook,
            "status": self._describe_status,
        }

    def run(self, operation: str, arguments: Arguments, environ: Environ) -> Answer:
        work = self._operations.get(operation)
        if work is None:
            raise InputError(
                f"there is no operation {operation!r:.80}; there are {', '.join(self._operations)}"
            )
        with self._lock:
            self._count += 1
        return work(arguments, environ)

    def finish(self) -> bool:
        """Do what was left for after the answer: counts, vectors, one message of the queue. Returns whether
        there is more to do."""
        with self._lock:
            later, self._later = self._later, []
        for work in later:
            self._try(work)
        waiting = list_messages(self._environ)
        if waiting:
            self._try(lambda: self._take_message(waiting[0]))
        is_busy = False
        for project in self.projects.list_open():
            with project.lock:
                is_busy = (not project.is_closed and project.keep_up()) or is_busy
        return is_busy or len(waiting) > 1

    def close(self) -> None:
        self.projects.close()

    def _recall(self, given: Arguments, environ: Environ) -> Answer:
        prompt = get_string(given, "prompt")[:_MAX_PROMPT_CHARS]
        with self._use(given, environ) as project:
            settings = project.workspace.settings.of(RecallSettings)
            limit = get_integer(given, "limit", settings.max_files, at_least=1, at_most=20)
            if not project.has_memory:
                return {"memories": [], "text": ""}
            project.follow()
            finder, now = project.finder, self._clock.now()
            found = finder.find(prompt, settings.candidates)
            chosen = choose_recalled(found, RecallFacts(), settings)[:limit]
            memories = finder.take(chosen)
            keys = [one.key for one in chosen]
            if keys:
                self._do_later(lambda: finder.count(keys, now))
        text = render_recalled_memories(memories, now, settings.file_bytes) if memories else ""
        return {"memories": [_describe_memory(one) for one in memories], "text": text}

    def _remember(self, given: Arguments, environ: Environ) -> Answer:
        with self._use(given, environ) as project:
            if not project.has_memory:
                raise InputError("memory is switched off here by memory.enabled; nothing was remembered")
            project.follow()
            draft = _read_draft(given)
            snapshot = project.snapshot
            today = self._clock.now().astimezone().date()
            sources = self._find_sources(project, given, environ)
            found = check_draft(draft, GateContext(sources, snapshot.known, snapshot.near, today))
            if isinstance(found, RefusedDraft):
                status = "known" if found.rule in ("duplicate", "unchanged", "recalled") else "refused"
                return {"status": status, "key": found.other or found.key, "message": found.reason}
            judged = found.judgement
            origin = Origin(
                who="agent",
                why="an agent asked for it",
                session=get_string(given, "session", "")[:100],
                said_by=judged.said_by,
                taint=judged.taint,
                evidence=judged.evidence,
            )
            change, memory = Write(found.key, found.text, found.base), project.memory
            if origin.is_trusted:
                memory.commit([change], origin)
                return {"status": "remembered", "key": found.key, "message": f"remembered as {found.key}"}
            if memory.was_asked([change]):
                return {"status": "waiting", "key": found.key, "message": f"{found.key}: {ALREADY_ASKED}"}
            memory.propose([change], origin, "an agent asked for it, and the user did not say it")
        message = (
            f"{found.key} is not remembered yet: it says more than the user said. It waits for them, and "
            "`sevenfold memory review` shows it; tell them so. What the user said is remembered at once when "
            "you pass their whole sentence, in their words and their language"
        )
        return {"status": "waiting", "key": found.key, "message": message}

    def _search_sessions(self, given: Arguments, environ: Environ) -> Answer:
        workspace = _open_workspace(given, environ)
        since = get_string(given, "since", "")
        try:
            when = datetime.fromisoformat(since).astimezone(UTC) if since else None
        except ValueError as error:
            raise InputError(f"since is {since!r:.80}; use a date such as 2026-11-01") from error
        query = SessionQuery(
            text=get_string(given, "query"),
            project=get_string(given, "project", "") or None,
            since=when,
            limit=get_integer(given, "limit", 10, at_least=1, at_most=50),
        )
        folders = list_default_folders(environ, find_user_home(environ))
        own, others = find_own_transcripts(workspace.home), find_transcripts(folders)
        kept = [item.path for item in (*own.unreadable, *others.unreadable)]
        with closing(SessionIndex.open(workspace.home, emit=self._emit)) as index:
            update = index.update([*own.files, *others.files], kept=kept)
            hits = index.search(query)
        return {"hits": [describe_hit(hit) for hit in hits], "is_busy": update.is_busy}

    def _read_result(self, given: Arguments, environ: Environ) -> Answer:
        with self._use(given, environ) as project:
            sessions = Path(project.workspace.project.sessions.path)
        path = find_stored_result(sessions, get_string(given, "path", ""), get_string(given, "id", ""))
        offset = get_integer(given, "offset", 0, at_least=0)
        limit = get_integer(given, "limit", MAX_RESULT_BYTES, at_least=1, at_most=MAX_RESULT_BYTES)
        return read_stored_result(path, offset, limit)

    def _spend(self, given: Arguments, environ: Environ) -> Answer:
        workspace, now = _open_workspace(given, environ), self._clock.now()
        rules = workspace.settings.of(SpendSettings)
        with closing(SpendStore.open(workspace.home, emit=self._emit)) as store:
            state = Governor(store, rules, emit=self._emit).state()
            charges = [
                one
                for one in store.charges((now - SPEND_DAY).date(), now.date())
                if one.at > now - SPEND_DAY and not one.is_unbilled
            ]
        return describe_spend(state, charges, rules, now)

    def _read_index(self, given: Arguments, environ: Environ) -> Answer:
        with self._use(given, environ) as project:
            if not project.has_memory:
                return {"text": "", "path": "", "cut_lines": 0, "keys": []}
            project.follow()
            memory = project.memory
            found, path, keys = project.read_index(), str(memory.path / INDEX_FILE), memory.keys()
        return {"text": found.text, "path": path, "cut_lines": found.cut_lines, "keys": list(keys)}

    def _read_memory(self, given: Arguments, environ: Environ) -> Answer:
        key = check_memory_key(get_string(given, "key"))
        with self._use(given, environ) as project:
            if not project.has_memory:
                raise FileMissing(f"there is no memory {key!r}: memory is switched off by memory.enabled")
            project.follow()
            stored, path = project.memory.read(key), str(project.memory.path / key)
        return {
            "key": key,
            "path": path,
            "name": stored.memory.name,
            "description": stored.memory.description,
            "type": stored.memory.kind,
            "text": stored.memory.text,
            "body": stored.memory.body,
            "modified": stored.modified.astimezone(UTC).isoformat(),
            "said_by": stored.origin.said_by,
            "is_trusted": stored.is_trusted,
        }

    def _run_hook(self, given: Arguments, environ: Environ) -> Answer:
        event, wire = get_string(given, "event"), read_object(get_string(given, "input"))
        is_late, deadline_ms = (
            given.get("is_late") is True,
            get_integer(given, "deadline_ms", 10**15, at_least=0, at_most=10**15),
        )
        if event not in HOOK_EVENTS:
            raise InputError(f"event is {event!r:.80}; expected one of {', '.join(HOOK_EVENTS)}")
        session_id = get_string(wire, "session_id", "") or "unknown"
        transcript, agent = get_string(wire, "transcript_path", ""), get_string(wire, "agent_id", "")
        with self.projects.use(get_string(wire, "cwd"), environ) as project:
            name = f"{session_id}-{agent}" if agent else session_id
            session = project.sessions.get(name, lambda: load_agent_session(project, name))
            before = write_fields(session)
            session.transcript, session.cwd = transcript or session.transcript, get_string(wire, "cwd")
            if project.has_memory:
                project.follow()
            conversation = _find_conversation(project, session)
            call = HookCall(
                event=event,
                given=wire,
                project=project,
                session=session,
                conversation=conversation,
                clock=self._clock,
                emit=self._emit,
                do_later=self._do_later,
                is_late=lambda: is_late or time.monotonic() * 1000 > deadline_ms,
            )
            said = answer_hook(call)
            if write_fields(session) != before:
                self._do_later(lambda: keep_agent_session(project, session))
            if event == "SessionStart":
                self._do_later(project.warm_up)
                self._do_later(lambda: self._pull(project))
                self._do_later(lambda: prune_agent_sessions(project, self._clock.now()))
        if event in QUEUED_EVENTS and not agent:
            if is_late:
                self._extract(project, session, is_end=event == "SessionEnd")
            else:
                leave_message(_render_message(given, environ), self._environ)
        return {"stdout": said}

    def _take_message(self, path: str) -> None:
        """Do what a hook has left. A message that was begun twice and never finished is dropped."""
        begun = f"{path.removesuffix('.json')}.begun.json"
        if path.endswith(".begun.begun.json"):
            os.unlink(path)
            return
        os.rename(path, begun)
        message = read_object(Path(begun).read_bytes())
        given, environ = message.get("arguments"), message.get("environ")
        if isinstance(given, JsonObject) and isinstance(environ, JsonObject):
            known = {name: value for name, value in environ.items() if isinstance(value, str)}
            self._try(lambda: self._run_hook(freeze_object({**given, "is_late": True}), known))
        os.unlink(begun)

    def _extract(self, project: OpenProject, session: AgentSession, *, is_end: bool) -> None:
        with project.lock:
            if project.is_closed or not project.has_memory or not session.transcript:
                return
            conversation = _find_conversation(project, session)
            conversation.update()
            snapshot = conversation.snapshot
            writer = project.writers.get(
                session.session,
                lambda: make_session_writer(
                    project, session.session, self._clock, self._emit, asks_model=self._asks_model
                ),
            )
        extract_memories(writer, snapshot, is_end=is_end)

    def _pull(self, project: OpenProject) -> None:
        now = self._clock.uptime()
        if not project.is_closed and now - project.pulled_at >= PULL_PAUSE:
            project.pulled_at = now
            pull_team_memory(project, self._clock, self._emit)

    def _try(self, work: Callable[[], object]) -> None:
        """Nobody waits for it, so that it fails is logged and no more."""
        try:
            work()
        except Exception as error:
            log_failure(self._environ, f"{type(error).__name__}: {error}")

    def _describe_status(self, _given: Arguments, _environ: Environ) -> Answer:
        return {
            "pid": os.getpid(),
            "version": __version__,
            "protocol": PROTOCOL,
            "uptime_seconds": int((self._clock.uptime() - self._started).total_seconds()),
            "requests": self._count,
            "projects": self.projects.list_roots(),
        }

    def _find_sources(self, project: OpenProject, given: Arguments, environ: Environ) -> ConversationSources:
        """What was said lately in sessions of other agents in this project, or in the one that is named."""
        named = get_string(given, "session", "")
        sessions = [one for one in project.sessions.values() if not named or one.session == named]
        messages: list[Message] = []
        for session in sessions[-MAX_SOURCES:]:
            messages += list_messages_of(_find_conversation(project, session), session)
        if not sessions:
            # No hooks: the newest transcripts that agents have written for this project.
            folders = list_default_folders(environ, find_user_home(environ))
            root, oldest = str(project.workspace.root), self._clock.now() - SOURCE_AGE
            messages = read_recent_messages(find_transcripts(folders).files, root, oldest)
        return ConversationSources(split_passages(messages))

    def _use(self, given: Arguments, environ: Environ) -> AbstractContextManager[OpenProject]:
        return self.projects.use(get_string(given, "cwd"), environ)

    def _do_later(self, work: Callable[[], None]) -> None:
        with self._lock:
            self._later.append(work)


def run_once(operation: str, arguments: Mapping[str, object], environ: Environ | None = None) -> Answer:
    """Run one operation in this process, with everything opened for it and closed after it."""
    service = ResidentOperations()
    try:
        known = select_environ(os.environ if environ is None else environ)
        answer = service.run(operation, freeze_object(arguments), known)
        service.finish()
    finally:
        service.close()
    return answer


def _find_conversation(project: OpenProject, session: AgentSession) -> AgentConversation:
    path = Path(session.transcript)
    conversation = project.conversations.get(session.session, lambda: AgentConversation(path))
    conversation.move_to(path)
    return conversation


def _render_message(given: Arguments, environ: Environ) -> bytes:
    return write_json(freeze_object({"operation": "hook", "arguments": given, "environ": dict(environ)}))


def _describe_memory(memory: RecalledMemory) -> Answer:
    return {
        "key": memory.key,
        "path": memory.path,
        "body": memory.body,
        "modified": memory.modified.astimezone(UTC).isoformat(),
        "said_by": memory.origin.said_by,
        "is_trusted": memory.origin.is_trusted,
        "doubt": memory.doubt,
    }


def _read_draft(given: Arguments) -> MemoryDraft:
    content = get_string(given, "content").strip()
    first = next(iter(split_sentences(content)), content)
    description = " ".join(get_string(given, "description", "").split())
    description = description or truncate_words(first, MAX_DRAFT_DESCRIPTION_CHARS)
    name = get_string(given, "name", "").removesuffix(".md") or make_slug(description) or "memory"
    key = check_memory_key(f"{name}.md")
    conditions = given.get("applies_to", ())
    if not isinstance(conditions, tuple) or not all(isinstance(one, str) for one in conditions):
        raise InputError(f"applies_to is {conditions!r:.80}; use a list of texts such as command:git push*")
    return MemoryDraft(
        key=key,
        name=name.rpartition("/")[2],
        description=description,
        kind=get_choice(given, "type", MEMORY_KINDS, "project"),
        body=content,
        applies_to=tuple(str(one) for one in conditions),
    )


def _open_workspace(given: Arguments, environ: Environ) -> Workspace:
    cwd = Path(get_string(given, "cwd"))
    if not cwd.is_absolute() or not cwd.is_dir():
        raise InputError(f"cwd is {str(cwd)!r:.200}; expected the absolute path of a folder")
    return Workspace.open(WorkspaceOptions(project=cwd, environ=environ))
