"""Which MCP clients work with `sevenfold mcp`, in which version of the protocol. Prints a table.

    python bench/mcp_matrix.py --clients DIR          # install what is missing there, and keep it
    python bench/mcp_matrix.py --clients DIR --only sdk-2.3 --only inspector

The clients are the official Python SDK 1.30 and 2.3, over stdio and streamable HTTP; the inspector's command
line; Claude Code and Codex, with a model of the simulator that calls the tool `recall`. `mcp_relay.py` holds
a client that chooses its version itself to the wanted one. A cell is `ok`, what went wrong, or `-` where the
client does not speak the version: then the line below says what it does instead. The last line is the time
to a first answer from a cold start.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TypeAlias

from sevenfold.testing import Choices, Prompt, Reply, Simulator, say

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
RELAY = Path(__file__).with_name("mcp_relay.py")
MEMORY = "Deploys go out on Tuesdays, after the smoke test."
QUESTION = "When do deploys go out?"
PATIENCE_SECONDS = 240
CLAUDE = "node_modules/@anthropic-ai/claude-code-linux-x64/claude"
CODEX = "node_modules/.bin/codex"
INSPECTOR = "node_modules/.bin/mcp-inspector"
PACKAGES = {
    CLAUDE: "@anthropic-ai/claude-code-linux-x64",
    CODEX: "@openai/codex",
    INSPECTOR: "@modelcontextprotocol/inspector",
}

SDK_1 = """
import asyncio, json, os, sys
import mcp.types as types
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

async def talk(streams, version):
    async with ClientSession(streams[0], streams[1]) as session:
        begun = await session.initialize()
        assert begun.protocolVersion == version, begun.protocolVersion
        await session.send_ping()
        await check(session)

async def check(session):
    names = [tool.name for tool in (await session.list_tools()).tools]
    assert names == ["recall", "remember", "search_sessions", "read_result", "spend"], names
    seen = []
    async def show(*progress): seen.append(progress)
    found = await session.call_tool("recall", {"query": sys.argv[3]}, progress_callback=show)
    assert "Tuesdays" in found.content[0].text and not found.isError, found
    assert seen, "no progress"
    wrong = await session.call_tool("recall", {})
    assert wrong.isError
    resources = (await session.list_resources()).resources
    text = (await session.read_resource(resources[1].uri)).contents[0].text
    assert "Tuesdays" in text
    assert (await session.list_resource_templates()).resourceTemplates
    assert len((await session.list_prompts()).prompts) == 3
    prompt = await session.get_prompt("recall", {"query": sys.argv[3]})
    assert "Tuesdays" in prompt.messages[0].content.text

async def main():
    version, where = sys.argv[1], sys.argv[2]
    types.LATEST_PROTOCOL_VERSION = version
    if where.startswith("http"):
        async with streamablehttp_client(where) as streams: await talk(streams, version)
    else:
        command, *args = json.loads(where)
        started = StdioServerParameters(command=command, args=args, env=dict(os.environ))
        async with stdio_client(started) as streams: await talk(streams, version)

asyncio.run(main())
"""

SDK_2 = """
import asyncio, json, os, sys
import mcp.client.session as session_module
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

async def check(client, version):
    assert client.protocol_version == version, client.protocol_version
    names = [tool.name for tool in (await client.list_tools()).tools]
    assert names == ["recall", "remember", "search_sessions", "read_result", "spend"], names
    seen = []
    async def show(*progress): seen.append(progress)
    found = await client.call_tool("recall", {"query": sys.argv[3]}, progress_callback=show)
    assert "Tuesdays" in found.content[0].text and not found.is_error, found
    assert seen, "no progress"
    wrong = await client.call_tool("recall", {})
    assert wrong.is_error
    resources = (await client.list_resources()).resources
    text = (await client.read_resource(str(resources[1].uri))).contents[0].text
    assert "Tuesdays" in text
    assert (await client.list_resource_templates()).resource_templates
    assert len((await client.list_prompts()).prompts) == 3
    prompt = await client.get_prompt("recall", {"query": sys.argv[3]})
    assert "Tuesdays" in prompt.messages[0].content.text

async def main():
    version, where = sys.argv[1], sys.argv[2]
    session_module.LATEST_HANDSHAKE_VERSION = version
    if where.startswith("http"):
        server = where
    else:
        command, *args = json.loads(where)
        server = stdio_client(StdioServerParameters(command=command, args=args, env=dict(os.environ)))
    mode = "auto" if version == "2026-07-28" else "legacy"
    async with Client(server, mode=mode) as client: await check(client, version)

asyncio.run(main())
"""

Check: TypeAlias = "Callable[[Bench, str], str]"


@dataclass(frozen=True, slots=True)
class Client:
    """One row of the table."""

    name: str
    needs: str
    """What has to be there, below the folder of clients."""
    check: Check
    speaks: tuple[str, ...]
    otherwise: str = ""
    """What it does at the versions that it does not speak."""


@dataclass(frozen=True, slots=True)
class Bench:
    """A project with one memory, the clients, and the server."""

    clients: Path
    home: Path

    @property
    def project(self) -> Path:
        return self.home / "project"

    @property
    def server(self) -> list[str]:
        return [sys.executable, "-m", "sevenfold", "mcp"]

    @property
    def environ(self) -> dict[str, str]:
        kept = {
            name: os.environ[name] for name in ("PATH", "PYTHONPATH", "VIRTUAL_ENV") if name in os.environ
        }
        return {**kept, "HOME": str(self.home)}

    def relayed(self, version: str, log: Path) -> list[str]:
        return [sys.executable, str(RELAY), version, str(log), *self.server]

    def run(self, command: Sequence[str], **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.project,
            env={**self.environ, **extra},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    @contextmanager
    def serve_http(self) -> Generator[str]:
        server = subprocess.Popen(
            [*self.server, "--http"], cwd=self.project, env=self.environ, stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.kill()
            server.wait()


def check_sdk(code: str, python: str, *, http: bool) -> Check:
    def check(bench: Bench, version: str) -> str:
        command = [str(bench.clients / python), "-c", code, version]
        if http:
            with bench.serve_http() as url:
                done = bench.run([*command, url, QUESTION])
        else:
            done = bench.run([*command, json.dumps(bench.server), QUESTION])
        return "ok" if done.returncode == 0 else _last_line(done.stderr)

    return check


def check_inspector(bench: Bench, version: str) -> str:
    calls = (
        ["tools/list"],
        ["tools/call", "--tool-name", "recall", "--tool-arg", f"query={QUESTION}"],
        ["resources/list"],
        ["prompts/list"],
    )
    for call in calls:
        log = bench.home / f"inspector-{version}.log"
        command = [str(bench.clients / INSPECTOR), "--cli", *bench.relayed(version, log), "--method", *call]
        done = bench.run(command)
        if done.returncode or (call[0] == "tools/call" and "Tuesdays" not in done.stdout):
            return _last_line(done.stderr or done.stdout)
    return "ok"


def check_claude(bench: Bench, version: str) -> str:
    log = bench.home / f"claude-{version}.log"
    command, *args = bench.relayed(version, log)
    server = {"command": command, "args": args, "alwaysLoad": True}
    config = json.dumps({"mcpServers": {"sevenfold": server}})
    with Simulator(_recall_once, choices=Choices(strict=False)) as sim:
        flags = ["--mcp-config", config, "--strict-mcp-config", "--allowedTools", "mcp__sevenfold__recall"]
        flags += ["--output-format", "stream-json", "--verbose"]
        done = bench.run(
            [str(bench.clients / CLAUDE), "-p", QUESTION, *flags],
            ANTHROPIC_BASE_URL=sim.url,
            ANTHROPIC_API_KEY="simulated",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        )
    return _judge_calls(log, done)


def check_codex(bench: Bench, version: str) -> str:
    log = bench.home / f"codex-{version}.log"
    command, *args = bench.relayed(version, log)
    with Simulator(_recall_once, choices=Choices(strict=False)) as sim:
        provider = f'{{name="sim",base_url="{sim.url}/v1",wire_api="responses",env_key="OPENAI_API_KEY"}}'
        settings = {
            "model_providers.sim": provider,
            "model_provider": "sim",
            "mcp_servers.sevenfold.command": json.dumps(command),
            "mcp_servers.sevenfold.args": json.dumps(args),
            "mcp_servers.sevenfold.default_tools_approval_mode": '"approve"',
        }
        flags = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        done = bench.run(
            [
                *(str(bench.clients / CODEX), "exec", "--json", "--skip-git-repo-check", "-m", "gpt-5"),
                *("--dangerously-bypass-approvals-and-sandbox", *flags, QUESTION),
            ],
            OPENAI_API_KEY="simulated",
        )
    return _judge_calls(log, done)


def _recall_once(prompt: Prompt) -> Reply:
    """A model that calls `recall` where it can, and then answers."""
    name = next((name for name in prompt.tools if name.endswith("recall")), "mcp__sevenfold__recall")
    if prompt.results or QUESTION not in prompt.last_text:
        return say("On Tuesdays.")
    return say(calls={name: {"query": QUESTION}})


def _judge_calls(log: Path, done: subprocess.CompletedProcess[str]) -> str:
    """From what passed the relay: whether the tool was called, and its answer reached the client."""
    seen = [tuple(json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []
    if ("tools/call", "result") in seen and "Tuesdays" in done.stdout:
        return "ok"
    return f"seen: {seen[-4:]}; {_last_line(done.stderr or done.stdout)}"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no output"


CLIENTS = (
    Client(
        "sdk-1.30 stdio",
        "sdk-1.30/bin/python",
        check_sdk(SDK_1, "sdk-1.30/bin/python", http=False),
        VERSIONS[:-1],
        "begins with initialize",
    ),
    Client(
        "sdk-1.30 http",
        "sdk-1.30/bin/python",
        check_sdk(SDK_1, "sdk-1.30/bin/python", http=True),
        VERSIONS[:-1],
        "begins with initialize",
    ),
    Client(
        "sdk-2.3 stdio", "sdk-2.3/bin/python", check_sdk(SDK_2, "sdk-2.3/bin/python", http=False), VERSIONS
    ),
    Client("sdk-2.3 http", "sdk-2.3/bin/python", check_sdk(SDK_2, "sdk-2.3/bin/python", http=True), VERSIONS),
    Client("inspector", INSPECTOR, check_inspector, VERSIONS[:-1], "begins with initialize"),
    Client("claude-code", CLAUDE, check_claude, VERSIONS),
    Client("codex", CODEX, check_codex, VERSIONS[:-1], "begins with initialize"),
)


def install(folder: Path) -> None:
    """What is not there yet, from the package registries."""
    for name, pin in (("sdk-1.30", "mcp==1.30.0"), ("sdk-2.3", "mcp==2.3.0")):
        if not (folder / name).exists():
            venv.create(folder / name, with_pip=True)
            subprocess.run([folder / name / "bin/python", "-m", "pip", "install", "-q", pin], check=True)
    missing = [package for path, package in PACKAGES.items() if not (folder / path).exists()]
    if missing:
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *missing]
        subprocess.run(command, check=True, capture_output=True)


@contextmanager
def open_bench(clients: Path) -> Generator[Bench]:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(clients, Path(folder))
        bench.project.mkdir()
        bench.run(["git", "init", "-q"])
        added = bench.run([sys.executable, "-m", "sevenfold", "memory", "add", "deploys", "-m", MEMORY])
        assert added.returncode == 0, added.stderr
        try:
            yield bench
        finally:
            bench.run([sys.executable, "-m", "sevenfold", "resident", "stop"])


def fill_row(bench: Bench, client: Client) -> dict[str, str]:
    """What came of a client at each version."""
    if not (bench.clients / client.needs).exists():
        return dict.fromkeys(VERSIONS, "not installed")
    return {
        version: client.check(bench, version) if version in client.speaks else "-" for version in VERSIONS
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="MCP clients and versions")
    parser.add_argument("--clients", type=Path, required=True, metavar="DIR")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="clients whose name begins so"
    )
    parser.add_argument("--no-install", action="store_true")
    options = parser.parse_args()
    if not options.no_install:
        install(options.clients)
    chosen = [one for one in CLIENTS if not options.only or one.name.startswith(tuple(options.only))]
    failed = 0
    print(f"{'client':<16}" + "".join(f"{version:<14}" for version in VERSIONS))
    with open_bench(options.clients.absolute()) as bench:
        for client in chosen:
            row = fill_row(bench, client)
            short = {version: cell if len(cell) < 14 else "FAILED" for version, cell in row.items()}
            print(f"{client.name:<16}" + "".join(f"{short[version]:<14}" for version in VERSIONS), flush=True)
            if client.otherwise:
                print(f"    -: {client.otherwise}")
            for version, cell in row.items():
                if cell not in ("ok", "-", "not installed"):
                    failed += 1
                    print(f"    {version}: {cell}")
    show_start()
    return 1 if failed else 0


def show_start(rounds: int = 15) -> None:
    """The time to a first answer from a cold start, beside that of a bare interpreter, in turns."""
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": VERSIONS[3]}}
    line = json.dumps(request) + "\n"
    answers: list[float] = []
    bare: list[float] = []
    for _ in range(rounds):
        began = perf_counter()
        command = [sys.executable, "-m", "sevenfold", "mcp"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write(line)
            server.stdin.flush()
            assert "result" in server.stdout.readline()
            answers.append(perf_counter() - began)
            server.stdin.close()
        began = perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        bare.append(perf_counter() - began)
    first, start = median(answers), median(bare)
    print(
        f"first answer {first * 1_000:.0f} ms, bare interpreter {start * 1_000:.0f} ms: {first / start:.2f}x"
    )


if __name__ == "__main__":
    sys.exit(main())
