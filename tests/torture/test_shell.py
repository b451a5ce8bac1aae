"""Hostile command lines in their shortest form: nothing gets out, and where it would, it is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from sevenfold.agent.sandbox.sandbox import Sandbox
from sevenfold.agent.sandbox.supervisor import LaunchSpec as RunOrders
from sevenfold.core.tool_kinds import SandboxProfile, ToolContext
from tests.torture.rig import Orders, Progress
from tests.torture.shell import PERMISSIONS, run_planted, run_shell
from tests.torture.shell_corpus import all_lines

pytestmark = pytest.mark.torture


class Leaky(Sandbox):
    """Says that it holds, and does not."""

    def supports(self, profile: SandboxProfile) -> bool:
        return True

    def build_launch_spec(self, profile: SandboxProfile, command: str, place: ToolContext) -> RunOrders:
        return Sandbox.build_launch_spec(self, "open", command, place)


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    return Orders("tiny", 1, tmp_path, Progress(quiet=True))


def test_there_are_enough_lines_and_no_two_are_the_same() -> None:
    texts = [line.text for line in all_lines()]
    assert len(set(texts)) >= 1_500
    assert len(texts) - len(set(texts)) < 10


def test_no_hostile_line_gets_out_under_any_permission(orders: Orders) -> None:
    found = run_shell(orders)
    if found[0].skipped:
        pytest.skip(found[0].skipped)
    assert len(found) >= len(PERMISSIONS)
    assert [line.shown for line in found if line.shown] == []
    assert all(line.count >= 20 for line in found if not line.skipped)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("echo x > {out}/new", "something outside was changed"),
        ("chmod 600 {out}/canary", "something outside was changed"),
        ("touch -d 2001-01-01 {home}/.bashrc", "something outside was changed"),
        ("echo x > made", "the project was changed"),
        ("echo x > .git/config", "what programs obey was changed"),
        ("exec 3<>/dev/tcp/127.0.0.1/{port}", "a TCP socket was reached"),
        ("echo x > /dev/udp/127.0.0.1/{udp}", "a UDP socket was reached"),
        ("python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{unix}\")'", "a Unix socket"),
        (
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"\\0{abstract}\")'",
            "an abstract",
        ),
        ("kill -STOP {victim}; sleep 0.1", "another process was ended or stopped"),
        ("cat {home}/.ssh/id_rsa", "a secret was shown"),
        ("echo $CORPUS_API_KEY", "a secret was shown"),
        ("setsid -f sleep 20 > /dev/null 2>&1; kill -9 $PPID", "a process was left behind"),
    ],
)
def test_a_line_that_gets_out_is_seen(orders: Orders, line: str, what: str) -> None:
    found = run_planted(orders, Leaky(), [line])
    assert any(what in text for text in found.shown), found.shown
