"""Claims against a project: what is there is confirmed, what is gone is named, what is unsure is left."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from sevenfold.layers.memory.trust import verifier
from sevenfold.layers.memory.trust.claims import find_claims
from sevenfold.layers.memory.trust.verifier import ClaimVerifier, describe_broken_claims
from sevenfold.store.project.user_files import FileState, read_file_state


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        "src/api/routes.py": "def load_settings(): ...\n\nclass UserStore:\n    def find_all(self): ...\n",
        "Makefile": ".PHONY: check\ncheck: lint\n\tpytest\nlint:\n\truff check\nX := 1\n",
        "package.json": json.dumps({"scripts": {"build:web": "vite build"}}),
        "scripts/dev.sh": "#!/bin/sh\n",
        "tests/test_api.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    "body",
    [
        "Routes are in `src/api/routes.py:3`.",
        "Routes are in `api/routes.py`.",
        "Everything is in `src/api/`.",
        "Call `load_settings()` before `UserStore.find_all`.",
        "Run `make check` and `make -C sub all`.",
        "Run `ssh host make release` and `docker exec web make assets`.",
        "Run `npm run build:web`.",
        "Run `./scripts/dev.sh --fast`.",
        "Run `pytest tests/test_api.py -q`.",
        "Dashboards: https://gone.example.org/d/1",
        "The user prefers short answers.",
    ],
)
def test_what_is_there_is_confirmed(root: Path, body: str) -> None:
    assert ClaimVerifier(root).verify(body) == ()


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("Routes are in `src/api/paths.py`.", "src/api/paths.py (no such file)"),
        ("Call `load_config()` first.", "load_config (found in no file)"),
        ("`UserStore.find_one` is fast.", "UserStore.find_one (found in no file)"),
        ("Run `make docs`.", "make docs (make has no target docs)"),
        ("Run `npm run deploy`.", "npm run deploy (package.json has no script deploy)"),
        ("Run `./scripts/prod.sh`.", "./scripts/prod.sh (no such file)"),
        (
            "Run `pytest tests/test_web.py`.",
            "pytest tests/test_web.py (no such file: tests/test_web.py)",
        ),
    ],
)
def test_what_is_gone_is_named_with_the_reason(root: Path, body: str, named: str) -> None:
    assert describe_broken_claims(ClaimVerifier(root).verify(body)) == f"could not be confirmed: {named}"


def test_a_symbol_is_looked_for_again_once_a_file_has_changed(root: Path) -> None:
    checker = ClaimVerifier(root)
    assert checker.verify("Call `load_config()`.")
    (root / "src/config.py").write_text("def load_config(): ...\n")
    assert checker.verify("Call `load_config()`.") == ()
    (root / "src/config.py").unlink()
    assert checker.verify("Call `load_config()`.")


def test_a_part_of_a_longer_word_is_no_symbol(root: Path) -> None:
    assert ClaimVerifier(root).verify("Call `load_setting()`.")


def test_what_time_did_not_suffice_for_is_not_broken(root: Path) -> None:
    assert ClaimVerifier(root).verify("Call `load_config()`; see `src/gone.py`.", timedelta()) == ()


def test_what_make_makes_up_as_it_runs_is_not_doubted(root: Path) -> None:
    (root / "Makefile").write_text("include rules.mk\ncheck:\n\ttrue\n")
    assert ClaimVerifier(root).verify("Run `make docs`.") == ()
    (root / "Makefile").unlink()
    assert ClaimVerifier(root).verify("Run `make docs`.") == ()


def test_a_claim_reaches_nothing_outside_the_project(root: Path, tmp_path: Path) -> None:
    (root / "link.py").symlink_to("/etc/hostname")
    body = "See `../secret.txt`, `/etc/passwd`, `~/.ssh/id_rsa` and `link.py`."
    assert ClaimVerifier(root).verify(body) == ()


def test_files_that_are_no_text_are_not_searched(root: Path) -> None:
    (root / "blob.bin").write_bytes(b"\0\0load_config\0")
    assert ClaimVerifier(root).verify("Call `load_config()`.")


def test_many_memories_are_checked_as_each_alone_and_read_a_file_once(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies = ["Call `load_settings()`.", "See `gone/paths.py`.", "Call `naïve_call()`."]
    bodies += [f"Call `part_{index}()` and `UserStore.find_all`." for index in range(20)]
    claims = [find_claims(body) for body in bodies]
    (root / "src/parts.py").write_text("def part_3(): ...\n\ndef naïve_call(): ...\n", encoding="utf-8")
    alone = [ClaimVerifier(root).check(some) for some in claims]
    read: list[str] = []

    def reading(path: str, *, max_bytes: int) -> FileState:
        read.append(path)
        return read_file_state(path, max_bytes=max_bytes)

    monkeypatch.setattr(verifier, "read_file_state", reading)
    assert ClaimVerifier(root).check_each(claims) == alone
    assert [index for index, broken in enumerate(alone) if not broken] == [0, 2, 6]
    assert len(read) == len(set(read))
