"""`sevenfold mcp` as a process, with a client of the official SDK."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sevenfold.integrations.mcp_server.protocol import INVALID_REQUEST
from tests.contracts.source_tree import ROOT
from tests.integrations.mcp_server.talking import ALL_VERSIONS, make_request

SLOW = frozenset(
    {"typing", "dataclasses", "argparse", "asyncio", "inspect", "decimal", "pathlib", "subprocess"}
)
"""Modules that take longer to load than the rest of the server does."""

LISTED = """
import json, sys
from sevenfold.cli import main
sys.argv = ["sevenfold", "mcp"]
code = main()
sys.stderr.write(json.dumps(sorted(sys.modules)))
sys.exit(code)
"""


def serve(lines: list[object], command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        input="".join(json.dumps(line) + "\n" for line in lines),
        cwd=cwd,
        env={**os.environ, "HOME": str(cwd), "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_first_answer_loads_little_of_the_standard_library_and_nothing_of_the_engine(
    tmp_path: Path,
) -> None:
    first = make_request("initialize", "2025-11-25", protocolVersion="2025-11-25")
    done = serve([first, make_request("tools/list", "2025-11-25", 2)], ["-S", "-c", LISTED], tmp_path)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2]
    loaded = set(json.loads(done.stderr))
    assert loaded & SLOW == set()
    ours = {name for name in loaded if name.startswith("sevenfold")}
    assert {name for name in ours if not name.startswith("sevenfold.integrations.mcp_server")} == {
        "sevenfold",
        "sevenfold._moved",
        "sevenfold.cli",
        "sevenfold.core",
        "sevenfold.integrations",
    }


def test_nothing_that_prints_gets_between_the_messages(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from sevenfold.integrations.mcp_server import stdio\n"
        "serve = stdio.StdioServer.serve\n"
        "def noisy(server):\n"
        "    print('noise', flush=True)\n"
        "    serve(server)\n"
        "stdio.StdioServer.serve = noisy\n"
        "sys.exit(stdio.serve_stdio())\n"
    )
    done = serve([make_request("tools/list", "2025-11-25")], ["-c", code], tmp_path)
    assert [json.loads(line)["error"]["code"] for line in done.stdout.splitlines()] == [INVALID_REQUEST]
    assert done.stderr == "noise\n"


SDK_CLIENT = """
import asyncio, os, sys
import mcp.client.session as session
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

async def main(version):
    session.LATEST_HANDSHAKE_VERSION = version
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "sevenfold", "mcp"], env=dict(os.environ), cwd=os.getcwd()
    )
    mode = "auto" if version == "2026-07-28" else "legacy"
    async with Client(stdio_client(server), mode=mode) as client:
        assert client.protocol_version == version
        assert len((await client.list_tools()).tools) == 5
        seen = []
        async def show(*progress): seen.append(progress)
        said = {"text": "Deploys go out on Tuesdays."}
        kept = await client.call_tool("remember", said, progress_callback=show)
        assert "waits" in kept.content[0].text and seen, kept
        found = await client.call_tool("recall", {"query": "When do deploys go out?"})
        assert "Nothing" in found.content[0].text, found
        index = (await client.list_resources()).resources[0]
        assert (await client.read_resource(str(index.uri))).contents

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.story
@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_what_a_model_wants_remembered_waits_for_review(tmp_path: Path, version: str) -> None:
    pytest.importorskip("mcp")
    done = serve([], ["-c", SDK_CLIENT, version], tmp_path)
    assert done.returncode == 0, done.stderr
    waiting = serve([], ["-m", "sevenfold", "memory", "review", "--json"], tmp_path)
    assert "Deploys go out on Tuesdays." in waiting.stdout
    stopped = serve([], ["-m", "sevenfold", "resident", "stop"], tmp_path)
    assert stopped.returncode in (0, 1, 2)


@pytest.mark.story
@pytest.mark.parametrize("is_cut", [False, True])
def test_the_address_over_http_is_secret_and_stays_the_same(tmp_path: Path, is_cut: bool) -> None:
    if is_cut:  # as a server that was killed while it wrote it
        (tmp_path / "home" / "run").mkdir(parents=True)
        (tmp_path / "home" / "run" / "mcp-token").touch(0o600)
    urls: list[str] = []
    for _ in range(2):
        with subprocess.Popen(
            [sys.executable, "-m", "sevenfold", "mcp", "--http"],
            cwd=tmp_path,
            env={**os.environ, "SEVENFOLD_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT / "src")},
            stdout=subprocess.PIPE,
            text=True,
        ) as server:
            assert server.stdout is not None
            urls.append(server.stdout.readline().strip())
            server.kill()
    first, second = (url.rpartition("/")[2] for url in urls)
    assert first == second
    assert len(first) == 32
    assert (tmp_path / "home" / "run" / "mcp-token").stat().st_mode & 0o077 == 0
    assert [one.name for one in (tmp_path / "home" / "run").glob("mcp-token*")] == ["mcp-token"]
