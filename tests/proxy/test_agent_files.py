"""Agents that are led by a file get a copy of it, and the user's own stays as it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from sevenfold.core.errors import InputError
from sevenfold.proxy.agent_files import COPY_PREFIX, RunCopy, drop_option, read_agent_file, remove_left_copies
from sevenfold.proxy.requests import ANTHROPIC_API, OPENAI_API, Upstreams
from sevenfold.store.files.folder import Folder
from sevenfold.testing import Simulator

URL = "http://127.0.0.1:9/run/token"
CONTINUE = """\
name: mine # the assistant
version: 1.0.0
schema: v1
models:
  - name: Claude # large
    provider: anthropic
    model: claude-opus-4-5
    apiKey: ${{ secrets.KEY }}
    defaultCompletionOptions:
      provider: openai
  # a comment
  - provider: "openai"
    name: Gate
    model: gpt-5
    apiBase: https://gate.example/v1   # ours
  -   model: gpt-5
      name: Far
      apiBase: https://far.example/v1/
      provider: openai
  - name: Local
    provider: ollama
    model: llama
rules:
  - provider: anthropic
"""


def copy_file(agent: str, home: Path, *arguments: str, given: str = "") -> tuple[RunCopy, Path, Any]:
    file = read_agent_file(agent, {"HOME": str(home)}, arguments, given)
    made = home / "copy"
    with Folder.open(made, create=True) as folder:
        return file.write_copy(folder, URL), made, file


def list_files(folder: Path) -> Mapping[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_models_of_continue_are_led_to_the_proxy_and_nothing_else_changes(tmp_path: Path) -> None:
    folder = tmp_path / ".continue"
    folder.mkdir()
    (folder / "config.yaml").write_text(CONTINUE)
    before = list_files(folder)
    copied, made, file = copy_file("continue", tmp_path)
    assert list_files(folder) == before
    assert copied.arguments == ("--config", str(made / "config.yaml"))
    assert file.upstreams == Upstreams(ANTHROPIC_API, "https://gate.example")
    assert file.left_alone == ["Far"]
    expected = yaml.safe_load(CONTINUE)
    for at in (0, 1):
        expected["models"][at]["apiBase"] = f"{URL}/v1/"
    assert yaml.safe_load((made / "config.yaml").read_text()) == expected
    assert (made / "config.yaml").stat().st_mode & 0o077 == 0


def test_a_server_that_the_user_names_takes_all_models(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(CONTINUE)
    path = str(tmp_path / "mine.yaml")
    _, made, file = copy_file("continue", tmp_path, "-p", f"--config={path}", given="http://one:1")
    assert file.upstreams == Upstreams("http://one:1", "http://one:1")
    found = yaml.safe_load((made / "config.yaml").read_text())["models"]
    assert [model.get("apiBase") for model in found] == [f"{URL}/v1/"] * 3 + [None]
    assert drop_option(["-p", "--config", path, "hi", f"--config={path}"], "--config") == ["-p", "hi"]


@pytest.mark.parametrize("text", [None, "models: []\n", "models: [{provider: anthropic}]\n", "name: x\n"])
def test_a_file_of_continue_that_cannot_be_led_is_refused(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(InputError, match=r"config\.yaml"):
        read_agent_file("continue", {"CONTINUE_GLOBAL_DIR": str(tmp_path)}, [])


def test_pi_has_its_own_folder_but_for_its_models(tmp_path: Path) -> None:
    folder = tmp_path / ".pi" / "agent"
    folder.mkdir(parents=True)
    providers = {
        "gate": {"baseUrl": "https://gate.example", "api": "anthropic-messages", "models": [{"id": "m"}]},
        "odd": {"baseUrl": "https://odd.example/openai", "api": "openai-completions"},
        "vertex": {"baseUrl": "https://v.example", "api": "google-vertex"},
    }
    (folder / "models.json").write_text(json.dumps({"providers": providers, "more": 1}))
    (folder / "settings.json").write_text('{"defaultProvider": "gate"}')
    (folder / "prompts").mkdir()
    before = list_files(folder)
    copied, made, file = copy_file("pi", tmp_path)
    assert copied.variables == {"PI_CODING_AGENT_DIR": str(made)}
    assert file.upstreams == Upstreams("https://gate.example", OPENAI_API)
    assert file.left_alone == ["odd", "anthropic"]
    written = json.loads((made / "models.json").read_text())
    providers["gate"]["baseUrl"] = URL
    assert written == {"providers": {**providers, "openai": {"baseUrl": f"{URL}/v1"}}, "more": 1}
    # What pi writes is the user's: sessions and a sign-in outlive the run.
    (made / "auth.json").write_text("{}")
    (made / "sessions" / "one.jsonl").write_text("{}")
    assert set(list_files(folder)) - set(before) == {
        str(folder / "auth.json"),
        str(folder / "sessions/one.jsonl"),
    }
    assert {path: data for path, data in list_files(folder).items() if path in before} == before


def test_pi_without_a_file_is_led_by_the_names_of_its_providers(tmp_path: Path) -> None:
    _, made, file = copy_file("pi", tmp_path)
    assert file.upstreams == Upstreams()
    assert json.loads((made / "models.json").read_text()) == {
        "providers": {"anthropic": {"baseUrl": URL}, "openai": {"baseUrl": f"{URL}/v1"}}
    }


FAKE = """\
#!{python}
import json, os, sys, anthropic, yaml
if "--config" in sys.argv:
    url = yaml.safe_load(open(sys.argv[sys.argv.index("--config") + 1]))["models"][0]["apiBase"]
else:
    path = os.environ["PI_CODING_AGENT_DIR"] + "/models.json"
    url = json.load(open(path))["providers"]["anthropic"]["baseUrl"]
client = anthropic.Anthropic(api_key="k", base_url=url.removesuffix("/v1/"), max_retries=0)
said = client.messages.create(model="claude-opus-4-5", max_tokens=50,
    messages=[{{"role": "user", "content": sys.argv[-1]}}])
print(said.content[0].text)
"""


@pytest.mark.story
@pytest.mark.parametrize(("agent", "name"), [("pi", "pi"), ("continue", "cn")])
def test_run_starts_an_agent_that_is_led_by_a_file(tmp_path: Path, agent: str, name: str) -> None:
    program, home = tmp_path / "bin" / name, tmp_path / "home"
    program.parent.mkdir()
    program.write_text(FAKE.format(python=sys.executable))
    program.chmod(0o755)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (home / ".continue").mkdir(parents=True)
    environ = {
        **os.environ,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "SEVENFOLD_HOME": str(tmp_path / "own"),
        "TMPDIR": str(temporary),
    }
    with Simulator(lambda _: "Done.") as sim:
        (home / ".continue/config.yaml").write_text(CONTINUE)
        command = [sys.executable, "-m", "sevenfold", "run", "--upstream", sim.url, agent, "hello"]
        ran = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        assert len(sim.ledger.billed) == 1
    assert ran.stdout.strip() == "Done."
    assert "1 model call in 1 conversation," in ran.stderr
    assert (home / ".continue/config.yaml").read_text() == CONTINUE
    assert not list(temporary.iterdir())


def test_the_copy_of_a_run_that_was_killed_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kept = tmp_path / "kept.json"
    kept.write_text("mine")
    gone, own, other = (
        tmp_path / name for name in ("sevenfold-run-999999999-x", f"{COPY_PREFIX}{os.getpid()}-x", "x")
    )
    for folder in (gone, own, other):
        folder.mkdir()
        (folder / "models.json").symlink_to(kept)
    remove_left_copies()
    assert not gone.exists()
    assert own.exists()
    assert other.exists()
    assert kept.read_text() == "mine"
