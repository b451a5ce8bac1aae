"""Schemathesis over a live server: what the OpenAPI document allows, and much that it does not."""

from __future__ import annotations

import re
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from sevenfold.team.server.database import Database, Tx
from tests.contracts.source_tree import ROOT, tool
from tests.team.live import serving
from tests.team.team import Team

ACCEPTED = ["2xx", "3xx", "401", "403", "404", "409", "412", "413", "422", "429"]
"""A request that fits the document may still be about a body that was never sent, or a name that is taken."""

CONFIG = """
base-url = "{url}"
headers = {{ Authorization = "Bearer {token}" }}
continue-on-failure = true
[parameters]
"query.repo" = "{repo}"
[checks.positive_data_acceptance]
expected-statuses = {accepted}
[[operations]]
include-name = "POST /api/v1/device/token"
checks.positive_data_acceptance.expected-statuses = {with_pending}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fuzzed:
    cases: int
    failures: int
    server_errors: int
    bugs: tuple[str, ...]
    report: str


def run_schemathesis(database: Database, folder: Path, *, examples: int, seed: int) -> Fuzzed:
    team = Team(database, now_ms=int(time.time() * 1000))
    with serving(database) as live:
        config = folder / "schemathesis.toml"
        config.write_text(
            CONFIG.format(
                url=live.url,
                token=team.token,
                repo=team.repo,
                accepted=ACCEPTED,
                with_pending=[*ACCEPTED, "400"],
            ),
            encoding="utf-8",
        )
        ended = threading.Event()
        keeper = threading.Thread(target=_keep_in_office, args=(team, ended))
        keeper.start()
        try:
            done = subprocess.run(
                [
                    *(tool("st"), "--config-file", str(config), "run", str(ROOT / "docs" / "openapi.json")),
                    *("--max-examples", str(examples), "--seed", str(seed)),
                    # Two of them parse lambdas at once, which Python 3.11 does not always survive.
                    *("--workers", "1"),
                ],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            ended.set()
            keeper.join()
        lines = list(live.lines)
    cases = re.search(r"(\d[\d,]*) generated", done.stdout)
    failures = re.search(r"(\d[\d,]*) failures?\b.* in [\d.]+s =", done.stdout)
    errors = re.search(r"(\d[\d,]*) errors?\b.* in [\d.]+s =", done.stdout)
    return Fuzzed(
        cases=_number(cases),
        failures=_number(failures) + _number(errors),
        server_errors=sum('"status":5' in line for line in lines),
        bugs=tuple(line for line in lines if line.startswith('{"event":"bug"'))[:5],
        report=done.stdout + done.stderr,
    )


def _number(found: re.Match[str] | None) -> int:
    return int(found[1].replace(",", "")) if found else 0


def _keep_in_office(team: Team, ended: threading.Event) -> None:
    """The fuzzer may well take its own rights away; somebody gives them back."""

    def give_back(tx: Tx) -> None:
        who = (team.org.id, team.owner.member)
        tx.rows("UPDATE member SET role = 'owner', removed = NULL WHERE org = ? AND id = ?", *who)
        tx.rows("UPDATE token SET revoked = NULL WHERE org = ? AND member = ?", *who)

    while not ended.wait(0.5):
        team.write(give_back)
