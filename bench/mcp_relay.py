"""Stands between an MCP client and a server, and holds both to one version of the protocol.

    python bench/mcp_relay.py VERSION LOG COMMAND [ARGUMENT …]

Up to 2025-11-25 `server/discover` is answered as by a server that does not know it, and the client's
handshake is passed on with the wanted version. So the server answers with that one, and a client that does
not speak it gives up. For 2026-07-28 a handshake is refused. LOG gets one JSON line for each request and its
outcome.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from threading import Lock, Thread
from typing import IO, cast

STATELESS = "2026-07-28"
REFUSED = {"initialize": -32022, "server/discover": -32601}


class Relay:
    """One client and one server."""

    def __init__(self, version: str, log: IO[str], command: list[str]) -> None:
        self.version, self.log = version, log
        self.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.methods: dict[object, str] = {}
        self.lock = Lock()

    def run(self) -> int:
        back = Thread(target=self.pass_back, daemon=True)
        back.start()
        to_server = cast("IO[bytes]", self.server.stdin)
        for line in sys.stdin.buffer:
            passed = self.change(line)
            if passed:
                to_server.write(passed)
                to_server.flush()
        to_server.close()
        back.join()
        return self.server.wait()

    def change(self, line: bytes) -> bytes:
        """The line for the server; empty if it was answered here."""
        message = cast("dict[str, object]", json.loads(line))
        method, rpc_id = str(message.get("method", "")), message.get("id")
        if rpc_id is not None:
            self.methods[rpc_id] = method
        wrong = "initialize" if self.version == STATELESS else "server/discover"
        if method == wrong:
            error: dict[str, object] = {"code": REFUSED[method], "message": "Method not found"}
            if method == "initialize":
                error["data"] = {"supported": [STATELESS], "requested": "a handshake"}
            self.answer({"jsonrpc": "2.0", "id": rpc_id, "error": error})
            self.note(method, "refused by the relay")
            return b""
        if method == "initialize":
            cast("dict[str, object]", message["params"])["protocolVersion"] = self.version
            return json.dumps(message).encode() + b"\n"
        return line

    def pass_back(self) -> None:
        for line in cast("IO[bytes]", self.server.stdout):
            message = cast("dict[str, object]", json.loads(line))
            if "id" in message:
                outcome = "error" if "error" in message else "result"
                result = message.get("result")
                if isinstance(result, dict) and cast("dict[str, object]", result).get("isError"):
                    outcome = "tool error"
                self.note(self.methods.get(message["id"], "?"), outcome)
            with self.lock:
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()

    def answer(self, message: dict[str, object]) -> None:
        with self.lock:
            sys.stdout.buffer.write(json.dumps(message).encode() + b"\n")
            sys.stdout.buffer.flush()

    def note(self, method: str, outcome: str) -> None:
        with self.lock:
            self.log.write(json.dumps([method, outcome]) + "\n")
            self.log.flush()


if __name__ == "__main__":
    with Path(sys.argv[2]).open("a", encoding="utf-8") as log:
        sys.exit(Relay(sys.argv[1], log, sys.argv[3:]).run())
