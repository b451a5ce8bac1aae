"""Frameworks on top of an attached client, as docs/loops.md shows them: real packages, on the simulator.

They are installed from the registry into a temporary folder, or taken from the folder that
`SEVENFOLD_TEST_FRAMEWORKS` names. Where they cannot be had, the tests are skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sevenfold.core.messages import ToolResult
from sevenfold.testing import Prompt, Reply, Simulator, say

pytestmark = [pytest.mark.story, pytest.mark.registry, pytest.mark.timeout(900)]

PACKAGES = (
    "langchain-openai==1.7.3",
    "langchain-anthropic==1.7.7",
    "pydantic-ai-slim[anthropic,openai]==2.66.0",
)
"""What was tested; the libraries that they share with us come along."""

# Read before the fixtures that take the caller's settings away.
GIVEN = os.environ.get("SEVENFOLD_TEST_FRAMEWORKS")

OPENING = """
import anthropic, openai
from sevenfold import attach
url, project = {url!r}, {project!r}
def events(event): print("event", type(event).__name__)
def http(kind): return kind(trust_env=False)
def look(name: str) -> str:
    "Looks something up."
    return "line\\n" * 50_000
"""

LANGCHAIN_OPENAI = """
from langchain_openai import ChatOpenAI
from langchain_core.messages import HumanMessage, ToolMessage
own = openai.OpenAI(api_key="k", base_url=url + "/v1", http_client=http(openai.DefaultHttpxClient))
with attach(own, project=project, emit=events) as client:
    model = ChatOpenAI(model="gpt-5.5", api_key="k", client=client.chat.completions, root_client=client,
                       use_responses_api={responses})
    tools = model.bind_tools([look])
    said = [HumanMessage("go " * 2_000)]
    for _ in range(3):
        answer = tools.invoke(said)
        said.append(answer)
        said += [ToolMessage(look("x"), tool_call_id=call["id"]) for call in answer.tool_calls]
    print("said", said[-1].text if hasattr(said[-1], "text") else said[-1])
own.close()
"""

PYDANTIC_AI = """
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
if {anthropic}:
    client = http(anthropic.DefaultAsyncHttpxClient)
    own = anthropic.AsyncAnthropic(api_key="k", base_url=url, http_client=client)
    attached = attach(own, project=project, emit=events)
    model = AnthropicModel("claude-opus-5", provider=AnthropicProvider(anthropic_client=attached.open()))
else:
    client = http(openai.DefaultAsyncHttpxClient)
    own = openai.AsyncOpenAI(api_key="k", base_url=url + "/v1", http_client=client)
    attached = attach(own, project=project, emit=events)
    model = OpenAIChatModel("gpt-5.5", provider=OpenAIProvider(openai_client=attached.open()))
agent = Agent(model, tools=[look], system_prompt="Help. " * 1_000)
first = agent.run_sync("go " * 2_000)
second = agent.run_sync("again", message_history=first.all_messages())
print("said", second.output, len(attached.sessions))
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the frameworks are installed in."""
    if GIVEN:
        return Path(GIVEN)
    folder = tmp_path_factory.mktemp("frameworks")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), *PACKAGES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        pytest.skip(f"the frameworks cannot be installed: {done.stderr[-300:]}")
    return folder


def brain(prompt: Prompt) -> Reply:
    """A tool call first, then an answer."""
    results = [
        block for message in prompt.messages for block in message.blocks if isinstance(block, ToolResult)
    ]
    return say("done") if results else say(calls={"look": {"name": "it"}})


@pytest.mark.parametrize(
    "script",
    [
        LANGCHAIN_OPENAI.replace("{responses}", "False"),
        LANGCHAIN_OPENAI.replace("{responses}", "True"),
        PYDANTIC_AI.replace("{anthropic}", "True"),
        PYDANTIC_AI.replace("{anthropic}", "False"),
    ],
    ids=["langchain-chat", "langchain-responses", "pydantic-ai-anthropic", "pydantic-ai-openai"],
)
def test_a_framework_has_the_layers_with_one_line(script: str, packages: Path, tmp_path: Path) -> None:
    with Simulator(brain) as sim:
        opening = OPENING.format(url=sim.url, project=str(tmp_path))
        done = subprocess.run(
            [sys.executable, "-c", opening + script],
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": str(packages)},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3_000:]
        assert "said done" in done.stdout
        assert "event ResultSpilled" in done.stdout
        billed = sim.ledger.billed
        assert len(billed) >= 3
        assert all(entry.difference is None for entry in billed)
        assert all(entry.usage.read > 1_000 for entry in billed[1:])
