"""The page of the team server says of rights what the code says."""

from __future__ import annotations

import re

from sevenfold.team.server.app_state import SELDOM_BURST
from sevenfold.team.server.commits import CHANGE_BYTES
from sevenfold.team.server.http_api import BODY_TIME
from sevenfold.team.server.http_server import HEAD_TIME, TAKE_TIME
from sevenfold.team.server.policy import (
    ACCESS_RULES,
    MAX_SMALL_BODY_BYTES,
    MEMBER_ROLES,
    REQUEST_BYTES_A_PERMIT,
    RESPONSE_BYTES_A_PERMIT,
    ServerLimits,
)
from tests.contracts.source_tree import ROOT

PAGE = (ROOT / "docs" / "server.md").read_text(encoding="utf-8")


def test_every_right_stands_in_the_page_with_its_scope_and_roles() -> None:
    told = re.findall(r"^\| `([\w.]+)` \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)
    expected = [
        (
            verb,
            f"`{rule.scope}`" if rule.scope else "any",
            ", ".join(role for role in MEMBER_ROLES if role in rule.roles),
        )
        for verb, rule in ACCESS_RULES.items()
    ]
    assert told == expected


def test_limits_stand_in_the_page_as_they_are() -> None:
    limits = ServerLimits()
    for said in (
        f"| memories of a repository | {limits.entries} ",
        f"| all texts of a repository | {limits.total_bytes // 10**6} MB |",
        f"history, {CHANGE_BYTES} bytes for each change | {limits.kept_bytes // 10**9} GB |",
        f"| all repositories of an organisation with their history | {limits.org_bytes // 10**9} GB |",
        f"deleted ones included | {limits.names:,} |",
        f"| {limits.waiting_bytes // 10**6} MB, {limits.body_hours} hours |",
        f"| one text | {limits.file_bytes:,} bytes |",
        f"| a request without texts | {MAX_SMALL_BODY_BYTES:,} bytes |",
        f"| the headers of a request | 64 KB, {HEAD_TIME.seconds} seconds |",
        f"| time to read a response | {TAKE_TIME.seconds} seconds |",
        f"| time to send a request's body | {BODY_TIME.seconds} seconds |",
        f"tried by an organisation | {SELDOM_BURST}, then",
        f"{REQUEST_BYTES_A_PERMIT:,} bytes of sent text, or {RESPONSE_BYTES_A_PERMIT:,} of read text",
        f"| a request with several texts | {limits.body_bytes:,} bytes",
        f"| requests of a token | {limits.token_rate} a second, {limits.token_rate * limits.burst_seconds}",
        f"in all processes together | {limits.org_rate} a second",
        f"without a valid token | {limits.stranger_rate} a second",
        f"at once | {limits.at_once};",
        f"wait for their turn | {limits.org_waiting:,} of an organisation, {limits.waiting:,} in all |",
        f"| tombstones | {limits.tombstone_days} days",
        f"| {limits.replay_days} days | a conflict",
    ):
        assert said in PAGE
