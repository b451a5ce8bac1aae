"""`sevenfold proxy` and `sevenfold run`: the bill of an agent that somebody else wrote."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from sevenfold.cli.screen import Screen
from sevenfold.cli.workspace import open_workspace
from sevenfold.core.clock import SystemClock
from sevenfold.core.errors import InputError
from sevenfold.proxy.ledger import ProxyEntry, ProxyLedger, render_receipt
from sevenfold.proxy.profiles import PROFILES, AgentProfile, find_profile
from sevenfold.proxy.server import ANTHROPIC_API, OPENAI_API, ProxyApp, ProxyRun, ProxyServer, Upstreams
from sevenfold.store.files.folder import Folder

PROXY_FOLDER = "proxy"
CONFIG_VARIABLE = "OPENCODE_CONFIG_CONTENT"
PROXY_STOP_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM})


def run_proxy(options: Namespace, screen: Screen) -> int:
    """Forward and bill until Ctrl-C."""
    with _open_ledger_folder() as folder:
        ledger = ProxyLedger(
            folder=folder, name=_ledger_name(), watch=None if options.quiet else _Watch(screen).show
        )
        app = ProxyApp(ledger=ledger, upstreams=find_upstreams(options.upstream, {}))
        server = ProxyServer(app, port=options.port)
        signal.pthread_sigmask(signal.SIG_BLOCK, PROXY_STOP_SIGNALS)
        try:
            server.start()
            screen.show(f"proxy on {server.url}, until Ctrl-C; nothing is changed, every request is billed")
            screen.show(f"  export ANTHROPIC_BASE_URL={server.url}")
            screen.show(f"  export OPENAI_BASE_URL={server.url}/v1")
            screen.flush()
            signal.sigwait(PROXY_STOP_SIGNALS)
        finally:
            server.stop()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, PROXY_STOP_SIGNALS)
        _show_receipt(ledger, folder.path, screen)
    return 0


def run_agent(options: Namespace, screen: Screen) -> int:
    """Start an agent behind a proxy of its own, and end with its bill; the exit code is the agent's."""
    profile = find_profile(options.agent)
    program = shutil.which(profile.program if profile else options.agent)
    if profile is None or not profile.can_start:
        known = ", ".join(one.name for one in PROFILES if one.can_start)
        raise InputError(
            f"{options.agent!r} cannot be started here; expected one of {known}. "
            "Start `sevenfold proxy` and lead the agent to its address"
        )
    if program is None:
        raise InputError(f"{profile.program} is not on the PATH; install {profile.name}, then try again")
    _refuse_conflicts(profile, os.environ)
    upstreams = find_upstreams(options.upstream, os.environ, profile)
    screen.note(f"requests go to {upstreams.anthropic} or {upstreams.openai}; --upstream URL changes that")
    with _open_ledger_folder() as folder:
        ledger = ProxyLedger(folder=folder, name=_ledger_name())
        app = ProxyApp(ledger=ledger, upstreams=upstreams)
        server = ProxyServer(app)
        server.start()
        try:
            code = _run_program(program, profile, server.run_url(ProxyRun.create(profile)), options.arguments)
        finally:
            server.stop()
            _show_receipt(ledger, folder.path, screen)
    return code


def find_upstreams(
    upstream: str | None, environ: Mapping[str, str], profile: AgentProfile | None = None
) -> Upstreams:
    """Where requests go: as the option says, or where the variables lead that the agent's are replaced by."""
    if upstream:
        url = _without_version(upstream)
        return Upstreams(url, url)
    names = [*(profile.variables if profile else ()), "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"]
    anthropic = [environ.get(name, "") for name in names if name.startswith("ANTHROPIC_")]
    openai = [environ.get(name, "") for name in names if name.startswith("OPENAI_")]
    return Upstreams(
        _without_version(next(filter(None, anthropic), ANTHROPIC_API)),
        _without_version(next(filter(None, openai), OPENAI_API)),
    )


def _without_version(url: str) -> str:
    return url.rstrip("/").removesuffix("/v1")


def _refuse_conflicts(profile: AgentProfile, environ: Mapping[str, str]) -> None:
    """Where the agent has a configuration that leading it to the proxy would replace."""
    if environ.get(CONFIG_VARIABLE) and CONFIG_VARIABLE in profile.variables:
        raise InputError(
            f"{CONFIG_VARIABLE} is set and would be replaced; start `sevenfold proxy`, and name its address "
            "there"
        )
    if profile.name == "codex" and not environ.get("OPENAI_API_KEY"):
        raise InputError(
            "codex needs OPENAI_API_KEY behind the proxy: a sign-in with ChatGPT goes to another address; "
            "set the key, and Codex is billed to it"
        )


def _run_program(program: str, profile: AgentProfile, url: str, arguments: list[str]) -> int:
    """The agent has the terminal; Ctrl-C is its own."""
    command = [program, *profile.make_arguments(url), *arguments]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        # A child inherits that a signal is ignored, and the agent wants Ctrl-C.
        running = subprocess.Popen(
            command,
            env={**os.environ, **profile.make_environ(url)},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no locks in it
        )
        for number in (signal.SIGTERM, signal.SIGHUP):
            # Whoever ends us means the agent, and the bill is still to be shown.
            signal.signal(number, lambda sent, _: running.send_signal(sent))
        code = running.wait()
    finally:
        signal.signal(signal.SIGINT, before)
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


def _open_ledger_folder() -> Folder:
    return Folder.open(open_workspace().home / PROXY_FOLDER, create=True)


def _ledger_name() -> str:
    return f"{SystemClock().now():%Y-%m-%d-%H%M%S}-{os.getpid()}.jsonl"


def _show_receipt(ledger: ProxyLedger, folder: Path | str, screen: Screen) -> None:
    for line in render_receipt(ledger.entries):
        screen.note(line)
    if ledger.write_error:
        screen.note(f"the ledger lacks requests: {ledger.write_error}")
    elif ledger.entries:
        screen.note(f"every request: {folder}/{ledger.name}")
