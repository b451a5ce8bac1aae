"""`sevenfold proxy` and `sevenfold run`: the bill of an agent that somebody else wrote."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

from sevenfold.cli.screen import Screen, format_count
from sevenfold.cli.workspace import open_workspace
from sevenfold.core.clock import SystemClock
from sevenfold.core.errors import InputError
from sevenfold.core.events import ignore_event
from sevenfold.proxy.agent_files import (
    COPY_PREFIX,
    AgentFile,
    RunCopy,
    drop_option,
    read_agent_file,
    remove_left_copies,
)
from sevenfold.proxy.agent_servers import (
    NamedServer,
    find_named_servers,
    make_arguments,
    refuse_override,
    refuse_project_servers,
)
from sevenfold.proxy.headers import LOOPBACK_ADDRESSES
from sevenfold.proxy.layers import ProxyLayers
from sevenfold.proxy.ledger import ProxyEntry, ProxyLedger
from sevenfold.proxy.memory import ProxyMemory
from sevenfold.proxy.profiles import PROFILES, AgentProfile, ProxiedApi, find_profile
from sevenfold.proxy.receipt import list_ledgers, render_receipt
from sevenfold.proxy.requests import ANTHROPIC_API, OPENAI_API, Upstreams
from sevenfold.proxy.server import ProxyApp, ProxyRun, ProxyServer
from sevenfold.proxy.state import RunStore, StateStore
from sevenfold.resident.client import select_environ
from sevenfold.store.files.folder import Folder

PROXY_FOLDER = "proxy"
CONFIG_VARIABLE = "OPENCODE_CONFIG_CONTENT"
CREDENTIAL_PREFIXES = ("ANTHROPIC_", "OPENAI_", "CLAUDE_CODE_")
PROXY_STOP_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM})


def run_proxy(options: Namespace, screen: Screen) -> int:
    """Forward and bill until Ctrl-C."""
    if options.list:
        return _list_ledgers(screen, as_json=options.json)
    profile = _find_named(options.agent) if options.agent else None
    take_environ()
    signal.pthread_sigmask(signal.SIG_BLOCK, PROXY_STOP_SIGNALS)
    try:
        with _open_ledger_folder() as folder, ExitStack() as exits:
            ledger = ProxyLedger(
                folder=folder, name=_ledger_name(), watch=None if options.quiet else _Watch(screen).show
            )
            app = _open_app(exits, folder, ledger, find_upstreams(options.upstream, {}))
            if options.bind not in LOOPBACK_ADDRESSES:
                app.access_token = secrets.token_urlsafe(24)
            server = ProxyServer(app, port=options.port, address=options.bind)
            server.start()
            exits.callback(server.stop)
            _show_addresses(server, profile, options, screen)
            signal.sigwait(PROXY_STOP_SIGNALS)
            server.stop()
            _end_layers(app)
            _show_receipt(app, folder.path, screen)
            return 1 if ledger.write_error else 0
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PROXY_STOP_SIGNALS)


def _show_addresses(
    server: ProxyServer, profile: AgentProfile | None, options: Namespace, screen: Screen
) -> None:
    if profile is None:
        url = server.url
        screen.show(
            f"proxy on {url}, until Ctrl-C; requests are forwarded unchanged, and their cost is recorded"
        )
    else:
        project = os.path.realpath(options.project or ".")
        run = ProxyRun.create(profile, project, records_only=options.record_only)
        url = server.run_url(run)
        if run.has_layers and server.app.layers is not None:
            server.app.layers.warm_up(project)
        done = ", ".join(sorted(profile.layers)) if run.has_layers else "nothing is changed"
        screen.show(f"proxy on {server.url}, until Ctrl-C; for {profile.name} in {project}: {done}")
    screen.show(f"  export ANTHROPIC_BASE_URL={url}")
    screen.show(f"  export OPENAI_BASE_URL={url}/v1")
    if server.app.access_token:
        screen.show(
            f"  header for requests without a run: proxy-authorization: Bearer {server.app.access_token}"
        )
    screen.flush()


def _open_app(exits: ExitStack, folder: Folder, ledger: ProxyLedger, upstreams: Upstreams) -> ProxyApp:
    """The application with its layers; both are closed with the stack."""
    clock = SystemClock()
    memory = ProxyMemory(clock=clock, environ=select_environ(os.environ), emit=ignore_event)
    layers = ProxyLayers(store=StateStore(folder), memory=memory)
    exits.callback(layers.close)
    layers.store.prune(clock.now())
    runs = RunStore(folder)
    runs.prune(clock.now())
    exits.callback(runs.close)
    return ProxyApp(ledger=ledger, upstreams=upstreams, layers=layers, run_store=runs, clock=clock)


def _end_layers(app: ProxyApp) -> None:
    if app.layers is not None:
        app.layers.finish()


def _end_layers_unless_interrupted(app: ProxyApp, screen: Screen) -> None:
    """Look through what is left. A model may take its time, and Ctrl-C ends the wait."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _end_layers(app)
    except KeyboardInterrupt:
        screen.note("interrupted: the last turn was not searched for memories")
    finally:
        signal.signal(signal.SIGINT, before)


def _find_named(name: str) -> AgentProfile:
    profile = find_profile(name)
    if profile is None:
        known = ", ".join(one.name for one in PROFILES)
        raise InputError(f"there is no agent {name!r}; expected one of {known}")
    return profile


def _list_ledgers(screen: Screen, *, as_json: bool) -> int:
    """The sessions that went through a proxy, the newest first, those that run too."""
    with _open_ledger_folder() as folder:
        found = list_ledgers(folder)
    if as_json:
        screen.show_json([one.to_json() for one in found])
        return 0
    for one in found:
        screen.show(one.render())
    if not found:
        screen.note(
            f"no request went through a proxy yet; nothing is in {open_workspace().home / PROXY_FOLDER}"
        )
    return 0


def run_agent(options: Namespace, screen: Screen) -> int:
    """Start an agent behind a proxy of its own, and end with its bill; the exit code is the agent's."""
    profile = _find_startable(options.agent)
    program = _find_program(profile)
    arguments: list[str] = options.arguments
    environ = take_environ()
    servers = find_named_servers(profile, environ, Path.cwd())
    refuse_override(profile, servers, arguments)
    if not options.upstream:
        refuse_project_servers(servers.values())
    _refuse_conflicts(profile, environ, has_own_server=bool(servers))
    file = _read_file(profile, environ, arguments, options.upstream)
    upstreams = file.upstreams if file else find_upstreams(options.upstream, environ, profile, servers)
    for name in file.left_alone if file else ():
        screen.note(f"{name} goes to another server, and not through the proxy; --upstream URL changes that")
    screen.note(f"requests go to {_name_upstreams(profile, upstreams)}; --upstream URL changes that")
    run = ProxyRun.create(profile, os.path.realpath("."), records_only=options.record_only)
    with _open_ledger_folder() as folder, ExitStack() as exits:
        # Once the agent has begun, Ctrl-C is its own until its bill is shown.
        exits.callback(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT))
        app = _open_app(exits, folder, _open_run_ledger(folder, profile, arguments, screen), upstreams)
        server = ProxyServer(app)
        server.start()
        if run.has_layers and app.layers is not None:
            app.layers.warm_up(run.project)
        try:
            url = server.run_url(run)
            copied = _copy_file(file, url, exits) if file is not None else RunCopy()
            arguments = drop_option(arguments, "--config") if copied.arguments else arguments
            leading = make_arguments(profile, servers, url, arguments)
            command = [program, *leading, *copied.arguments, *arguments]
            code = _run_program(command, {**environ, **profile.make_environ(url), **copied.variables})
        finally:
            server.stop()
            _end_layers_unless_interrupted(app, screen)
            if app.run_store is not None:
                app.run_store.remove(run.token)
            if app.ledger.entries:
                _show_receipt(app, folder.path, screen)
        if not app.ledger.entries:
            screen.note(
                f"no requests: {profile.name} asked no model, or its sign-in, provider or configuration "
                "leads past the proxy"
            )
    return code


def _name_upstreams(profile: AgentProfile, upstreams: Upstreams) -> str:
    """Those that this agent may ask."""
    named = {"anthropic": upstreams.anthropic, "openai": upstreams.openai}
    return " or ".join(dict.fromkeys(url for api, url in named.items() if api in profile.apis))


def _find_startable(name: str) -> AgentProfile:
    profile = find_profile(name)
    if profile is None or not profile.can_start:
        known = ", ".join(one.name for one in PROFILES if one.can_start)
        raise InputError(
            f"{name!r} cannot be started here; expected one of {known}. "
            "For any other, start `sevenfold proxy` and give its address to the agent as the base URL"
        )
    return profile


def _find_program(profile: AgentProfile) -> str:
    program = shutil.which(profile.program)
    if program is None:
        raise InputError(
            f"{profile.program} was not found; install {profile.name}, or add its folder to the PATH"
        )
    return program


def _copy_file(file: AgentFile, url: str, exits: ExitStack) -> RunCopy:
    """A copy of the agent's file for this run, which is removed with it."""
    remove_left_copies()
    made = exits.enter_context(TemporaryDirectory(prefix=f"{COPY_PREFIX}{os.getpid()}-"))
    return file.write_copy(exits.enter_context(Folder.open(Path(made))), url)


def find_upstreams(
    upstream: str | None,
    environ: Mapping[str, str],
    profile: AgentProfile | None = None,
    servers: Mapping[ProxiedApi, NamedServer] = MappingProxyType({}),
) -> Upstreams:
    """Where requests go: as the option says, or where they would go without us, by the agent's files
    (`servers`) and by the variables that a run replaces."""
    if upstream:
        url = _without_version(upstream)
        return Upstreams(url, url)
    names = [*(profile.variables if profile else ()), "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"]

    def find(api: ProxiedApi, default: str) -> str:
        set_to = [environ.get(name, "") for name in names if name.startswith(f"{api.upper()}_")]
        own = servers.get(api)
        wanted = [own.upstream if own else "", *map(_without_version, set_to)]
        if own and not own.beats_environ:
            wanted.append(wanted.pop(0))
        return next(filter(None, wanted), default)

    return Upstreams(find("anthropic", ANTHROPIC_API), find("openai", OPENAI_API))


def _without_version(url: str) -> str:
    return url.rstrip("/").removesuffix("/v1")


def _refuse_conflicts(profile: AgentProfile, environ: Mapping[str, str], *, has_own_server: bool) -> None:
    """Where the agent has a configuration that leading it to the proxy would replace."""
    if environ.get(CONFIG_VARIABLE) and CONFIG_VARIABLE in profile.variables:
        raise InputError(
            f"{CONFIG_VARIABLE} is set and would be replaced; start `sevenfold proxy`, and name its address "
            "there"
        )
    if profile.name == "codex" and not has_own_server and not environ.get("OPENAI_API_KEY"):
        raise InputError(
            "codex needs OPENAI_API_KEY behind the proxy: a sign-in with ChatGPT goes to another address; "
            "set the key, and Codex is billed to it"
        )


def take_environ() -> dict[str, str]:
    """The environment for the agent; of this process, variables with its credentials are removed, so that no
    library finds them here."""
    environ = dict(os.environ)
    for name in environ:
        if name.startswith(CREDENTIAL_PREFIXES):
            del os.environ[name]
    return environ


def _read_file(
    profile: AgentProfile, environ: Mapping[str, str], arguments: list[str], upstream: str | None
) -> AgentFile | None:
    if not profile.is_led_by_file:
        return None
    return read_agent_file(profile.name, environ, arguments, _without_version(upstream or ""))


def _run_program(command: list[str], environ: Mapping[str, str]) -> int:
    """The agent has the terminal; Ctrl-C is its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        # A child inherits that a signal is ignored, and the agent wants Ctrl-C.
        running = subprocess.Popen(
            command,
            env=environ,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no locks in it
        )
        for number in (signal.SIGTERM, signal.SIGHUP):
            # Whoever ends us means the agent, and the bill is still to be shown.
            signal.signal(number, lambda sent, _: running.send_signal(sent))
        code = running.wait()
    finally:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
    return code if code >= 0 else 128 - code


class _Watch:
    """Shows each request as it ends."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def show(self, entry: ProxyEntry) -> None:
        usage = entry.usage
        tokens = f"{usage.read:,} read, {usage.prompt - usage.read:,} not" if usage else "no usage"
        cost = "" if entry.cost is None else f"  ${entry.cost.total:.4f}"
        lost = f"  cache break: {entry.cache_break.cause}" if entry.cache_break else ""
        who = f"{entry.agent or 'unknown agent'} {entry.facts.purpose}"
        self._screen.note(f"{entry.status} {who} {entry.facts.model}: {tokens}{cost}{lost}")


def _open_run_ledger(
    folder: Folder, profile: AgentProfile, arguments: list[str], screen: Screen
) -> ProxyLedger:
    # While an agent draws on the terminal, a line of ours would stand in its picture: the bill says it.
    has_screen = sys.stdout.isatty() and not profile.one_shot.intersection(arguments)
    watch = None if has_screen else _FirstFailure(screen).show
    return ProxyLedger(folder=folder, name=_ledger_name(), watch=watch)


class _FirstFailure:
    """Reports the first request whose server cannot be reached: an agent may try again for a minute."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._is_told = False

    def show(self, entry: ProxyEntry) -> None:
        if self._is_told or not entry.is_unreachable:
            return
        self._is_told = True
        self._screen.note(
            f"{entry.target.error}; the agent may try again. --upstream URL names another server"
        )
        self._screen.flush()


def _open_ledger_folder() -> Folder:
    return Folder.open(open_workspace().home / PROXY_FOLDER, create=True)


def _ledger_name() -> str:
    return f"{SystemClock().now():%Y-%m-%d-%H%M%S}-{os.getpid()}.jsonl"


def _show_receipt(app: ProxyApp, folder: Path | str, screen: Screen) -> None:
    ledger, layers = app.ledger, app.layers
    for line in render_receipt(ledger.entries, ledger.catalog):
        screen.note(line)
    learnt = layers.memory.learnt if layers is not None else None
    if learnt is not None and (learnt.written or learnt.waiting):
        verb = "waits" if learnt.waiting == 1 else "wait"
        waiting = f", {learnt.waiting} {verb} for you: sevenfold memory review" if learnt.waiting else ""
        screen.note(f"learnt: {format_count(learnt.written, 'memory')}{waiting}")
    for error in layers.learn_errors if layers is not None else ():
        screen.note(f"the last turn was not searched for memories: {error}")
    if ledger.write_error:
        screen.note(f"the ledger lacks requests: {ledger.write_error}")
    elif ledger.entries:
        screen.note(f"every request: {folder}/{ledger.name}")
