"""What a turn behind the proxy teaches is learnt by rules, or by a model that the user has named and pays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sevenfold import MemoryDir
from sevenfold.cli.proxy import take_environ
from sevenfold.core.models import Model
from sevenfold.core.settings.sections import OtherAgentsSettings
from sevenfold.core.usage import Usage
from sevenfold.providers.provider import Provider
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.resident import learning_model
from tests.proxy.asking import Asker, open_layers, render, user

TAUGHT = "Our ferry to production is called amber, and nobody but Ines may start it."
SETTINGS = '[other_agents]\nmodel = "claude-haiku-4-5"\ncents_per_day = {cents}\nkey_file = "/key"\n'


@pytest.mark.parametrize(("cents", "is_learnt"), [(50, True), (0, False)])
def test_a_model_learns_only_for_an_amount_of_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cents: int, is_learnt: bool
) -> None:
    given = {"name": "ferry", "type": "project", "description": "Who starts the ferry", "content": TAUGHT}
    model, opened = ScriptedProvider([make_response(calls={"memory": given}), "Done."]), list[str]()

    def open_model(_: OtherAgentsSettings, named: Model) -> Provider:
        opened.append(named.name)
        return model

    monkeypatch.setattr(learning_model, "open_learning_provider", open_model)
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    (home / "settings.toml").write_text(SETTINGS.format(cents=cents))
    layers = open_layers(home)
    prepared = Asker(layers, project).prepare(render([user(TAUGHT)]))
    layers.answered(prepared, Usage(fresh=10, output=5), is_ended=True)
    layers.close()
    assert layers.learn_errors == []
    assert opened == (["claude-haiku-4-5"] if is_learnt else [])
    with MemoryDir.for_project(project, environ={"SEVENFOLD_HOME": str(home), "HOME": str(home)}) as memory:
        names = memory.keys()
        assert [memory.read(name).memory.body.strip() for name in names] == [TAUGHT] * is_learnt


@pytest.mark.parametrize("has_command", [False, True])
def test_the_text_of_a_projects_command_waits_for_review(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_command: bool
) -> None:
    """Some agents send it as if the user had typed it."""
    given = {"name": "ferry", "type": "project", "description": "Who starts the ferry", "content": TAUGHT}
    model = ScriptedProvider([make_response(calls={"memory": given}), "Done."])

    def open_model(_: OtherAgentsSettings, __: Model) -> Provider:
        return model

    monkeypatch.setattr(learning_model, "open_learning_provider", open_model)
    home, project = tmp_path / "home", tmp_path / "project"
    (project / ".opencode/command").mkdir(parents=True)
    if has_command:
        (project / ".opencode/command/ferry.md").write_text(f"---\ndescription: Ferry\n---\n{TAUGHT}\n")
    home.mkdir()
    (home / "settings.toml").write_text(SETTINGS.format(cents=50))
    layers = open_layers(home)
    asked = [user("Look at the ferry."), {"role": "assistant", "content": "Yes."}, user(TAUGHT)]
    prepared = Asker(layers, project, agent="opencode").prepare(render(asked))
    layers.answered(prepared, Usage(fresh=10, output=5), is_ended=True)
    layers.close()
    assert layers.learn_errors == []
    with MemoryDir.for_project(project, environ={"SEVENFOLD_HOME": str(home), "HOME": str(home)}) as memory:
        assert bool(memory.keys()) is not has_command


def test_the_process_of_the_proxy_holds_no_key_of_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    named = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN")
    for name in named:
        monkeypatch.setenv(name, "secret")
    environ = take_environ()
    assert [environ[name] for name in named] == ["secret"] * 4
    assert "secret" not in os.environ.values()
    assert os.environ["PATH"] == environ["PATH"]
