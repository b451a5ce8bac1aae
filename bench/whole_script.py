"""The script of `bench/whole.py`: an importer in thirty files, tasks in it, and a model that does them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from sevenfold.agent.tool import AccessRequest, OnProgress, ToolOutput, ToolSpec
from sevenfold.core.json import JsonObject, object_schema
from sevenfold.core.messages import Block, Text, Thinking, ToolResult
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.layers.forks.policy import FORK_MARK
from sevenfold.simulator.brain import result_text
from sevenfold.testing import Prompt, Reply, call_tool

MODULES = 30
_TASK = re.compile(r"^Task (\d+): ", re.MULTILINE)
TAUGHT = {
    2: ("uploads", "Uploads over 40 MB go through the relay in Oslo, because the gateway drops them."),
    5: ("releases", "Mira tags the releases on Thursdays, the pipeline never does."),
}
ASKED = {9: "Which relay do uploads over 40 MB take?", 17: "Who tags the releases, and on which day?"}


def module_text(number: int) -> str:
    lines = [f'"""Part {number} of the importer."""', ""]
    for step in range(60):
        name = f"convert_{number}_{step}"
        lines += [
            f"def {name}(record: Record, limit: int = {number * 7 + step}) -> Record:",
            f'    """Step {step}: normalise field {step * 3 % 17} and keep the source line."""',
            f"    return record.with_field('f{step * 3 % 17}', clean(record.raw[{step}], limit))  # {name}",
            "",
        ]
    return "\n".join(lines)


def edited_line(number: int, step: int) -> str:
    name = f"convert_{number}_{step}"
    return f"    return record.with_field('f{step * 3 % 17}', clean(record.raw[{step}], limit))  # {name}"


LOG_SPEC = ToolSpec("build_log", "The log of a build.", object_schema({"build": {"type": "integer"}}))


@dataclass(frozen=True, slots=True)
class BuildLog:
    """A tool of the caller's own, with results that are too long for a view."""

    spec: ToolSpec = LOG_SPEC

    def need(self, given: JsonObject, _place: ToolContext, /) -> AccessRequest:
        return AccessRequest(kind="nothing", said=f"the log of build {given.get('build')}")

    async def run(self, given: JsonObject, _place: ToolContext, _on_progress: OnProgress, /) -> ToolOutput:
        build = given.get("build")
        return ToolOutput(
            "\n".join(f"build {build} step {line}: checked, 0 warnings" for line in range(1_600))
        )


@dataclass(slots=True)
class ScriptedModel:
    """Does what its script says, and reads again what it no longer sees."""

    project: Path
    done: Counter[int] = field(default_factory=Counter[int])
    """Steps of each task that were taken."""
    reread: int = 0

    def __call__(self, prompt: Prompt) -> Reply:
        if prompt.purpose == "summary" or "<summary>" in prompt.last_text:
            return Reply(
                (Text(f"<analysis>x</analysis><summary>{'The importer is mended. ' * 40}</summary>"),)
            )
        if not prompt.tools:
            return Reply((Text('{"files": []}'),))
        if FORK_MARK in prompt.last_text:
            return self._aside(prompt)
        task = find_task(prompt)
        blocks = self._step(prompt, task)
        self.done[task] += 1
        thought = (Thinking(f"Task {task}, step {self.done[task]}: what is next?"),) if prompt.thinks else ()
        return Reply((*thought, *blocks))

    def _aside(self, prompt: Prompt) -> Reply:
        """A fork: extraction writes down what was taught; others have nothing to add."""
        task = find_task(prompt)
        if task in TAUGHT and "worth remembering" in prompt.last_text and not prompt.results:
            name, said = TAUGHT[task]
            fields = {"action": "write", "name": name, "type": "project", "description": f"About {name}."}
            return Reply((call_tool("memory", {**fields, "content": said}),))
        return Reply((Text("Nothing to add."),))

    def _step(self, prompt: Prompt, task: int) -> tuple[Block, ...]:
        step, first = self.done[task], task % MODULES
        if task in ASKED:
            return (Text("As it was said: see what was remembered."),)
        match step:
            case 0:
                return (
                    Text(f"I look for the steps of part {first}."),
                    self._grep(f"convert_{first}_[0-3]\\b"),
                )
            case 1:
                return (self._read(first), self._read((first + 7) % MODULES))
            case 2 if task % 4 == 1:
                return (call_tool("build_log", {"build": task}),)
            case 2 | 3:
                return self._edit(prompt, (first, (task - 2) % MODULES)[step - 2], task)
            case 4 | 5 if self._last_was_read(prompt):
                return self._edit(prompt, (task - 2) % MODULES, task)
            case _:
                return (Text(f"Part {first} is mended: convert_{first}_{task} keeps its limit."),)

    def _edit(self, prompt: Prompt, number: int, task: int) -> tuple[Block, ...]:
        """Change a line, which has to be in view to be quoted."""
        line, path = edited_line(number, task), str(self.project / f"src/part_{number}.py")
        if not any(line.strip() in text for text in seen_texts(prompt)):
            self.reread += 1  # what was cleared is asked for again
            return (self._read(number),)
        fields = {"file_path": path, "old_string": line, "new_string": f"{line}  # task {task}"}
        return (call_tool("edit", fields),)

    def _last_was_read(self, prompt: Prompt) -> bool:
        return any("of the importer" in result_text(result) for result in prompt.results)

    def _read(self, number: int) -> Block:
        return call_tool("read", {"file_path": str(self.project / f"src/part_{number}.py")})

    def _grep(self, pattern: str) -> Block:
        return call_tool("grep", {"pattern": pattern, "path": str(self.project / "src")})


def find_task(prompt: Prompt) -> int:
    """The number of the task that was said last."""
    for message in reversed(prompt.messages):
        for block in message.blocks if message.role == "user" else ():
            said = _TASK.search(block.text) if isinstance(block, Text) else None
            if said is not None:
                return int(said[1])
    return 0


def seen_texts(prompt: Prompt) -> list[str]:
    results = [
        block for message in prompt.messages for block in message.blocks if isinstance(block, ToolResult)
    ]
    return [result_text(block) for block in results]


def say_task(task: int) -> str:
    work = f"mend part {task % MODULES} of the importer: convert_{task % MODULES}_{task}."
    taught = f"{TAUGHT[task][1]}\n\n" if task in TAUGHT else ""
    return f"{taught}Task {task}: {ASKED.get(task) or work}"


def make_project(project: Path) -> None:
    (project / "src").mkdir(parents=True)
    for number in range(MODULES):
        (project / f"src/part_{number}.py").write_text(module_text(number), encoding="utf-8")
    (project / "AGENTS.md").write_text("Keep the importer's steps pure. Run the tests.\n", encoding="utf-8")
