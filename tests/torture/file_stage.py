"""A project full of traps, what lies around it, and who may touch what: the stage for hostile paths."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sevenfold.agent.permissions.guard import ForkGuard, Guard, PermissionVerdict, Reach
from sevenfold.agent.permissions.rules import PermissionRules, parse_permission_rules
from sevenfold.agent.tool import Tool
from sevenfold.agent.tools.file_changes import EditTool, WriteTool
from sevenfold.agent.tools.read import ReadTool
from sevenfold.agent.tools.search import GlobTool
from sevenfold.core.errors import SevenfoldError
from sevenfold.core.json import JsonObject, freeze_object
from sevenfold.core.messages import ToolUse, ToolUseId
from sevenfold.core.settings.sections import PERMISSION_MODES, PermissionMode
from sevenfold.core.tool_kinds import ReadState, ToolContext

CORPUS = Path(__file__).parent / "corpus" / "path_lines.txt"
CANARY = "canary"
"""Stands in everything outside that can be read."""
KEY = "a key"
"""Stands in the key inside, which only a writer whose reach it is in may read without asking."""

OUTSIDE = (
    "outside/secret",
    "user/.bashrc",
    "user/.ssh/authorized_keys",
    "home/settings.toml",
    "project_evil/a.py",
)
AROUND = ("outside", "user", "home", "project_evil")
"""What lies beside the project, and rules deny where the mode allows everything."""
INSIDE = ("src/a.py", "src/deep/b.py", "memory/a.md", "folder/x", ".git/config", ".git/HEAD", ".bashrc")
GUARDED = frozenset(
    {
        *(".git", ".sevenfold", ".claude", ".ssh", ".aws", ".gnupg", ".vscode", ".idea", ".husky", ".config"),
        *(".mcp.json", ".envrc", ".bashrc", ".zshrc", ".profile", ".bash_profile", ".zshenv", ".gitconfig"),
        *(".gitmodules", ".gitattributes", ".netrc", ".npmrc", ".devcontainer", ".git-credentials"),
    }
)
"""By the names that the lines use; every one that a file of the project may not be written under."""

LINKS = {
    "link_dir": "../outside",
    "link_deep": "../outside/../outside",
    "link_abs": "/",
    "link_up": "..",
    "link_chain": "link_dir",
    "link_chain2": "link_file",
    "link_root": ".",
    "link_proc": "/proc/self/cwd",
    "src/link_out": "../../outside",
    "memory/link": "../../outside",
    "link_file": "../outside/secret",
    "link_new": "../outside/new",
    "link_hook": ".git/hooks/pre-commit",
    "link_loop": "link_self",
    "link_self": "link_loop",
    "link_fifo": "fifo",
    "link_dev": "/dev/zero",
    "link_key": ".ssh/id",
    "link_hard": "hard",
    "link_settings": ".sevenfold/settings.local.toml",
    "link_rc": "../user/.bashrc",
    "dangling": "../outside/nowhere",
}


def read_paths() -> list[str]:
    """The lines of the corpus."""
    lines = CORPUS.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.startswith('"')]


@dataclass(frozen=True, slots=True)
class Trial:
    """One way of being allowed things."""

    name: str
    guard: Guard | ForkGuard


@dataclass(frozen=True, slots=True)
class Stage:
    base: Path

    @property
    def root(self) -> Path:
        return self.base / "project"

    def set_up(self) -> None:
        """Everything as it was at first."""
        shutil.rmtree(self.base, ignore_errors=True)
        for name in OUTSIDE:
            self._put(name, f"text {CANARY}\n")
        self._put("outside/hard", "text\n")
        for name in INSIDE:
            self._put(f"project/{name}", "text\n")
        self._put("project/.ssh/id", f"text {KEY}\n")
        for name, target in LINKS.items():
            (self.root / name).symlink_to(target)
        for name in ("fifo", "src/fifo"):
            os.mkfifo(self.root / name)
        for name in ("hard", "src/hard"):
            os.link(self.base / "outside/hard", self.root / name)
        with (self.root / "sparse").open("wb") as sparse:
            sparse.truncate(10**11)
        with socket.socket(socket.AF_UNIX) as door:
            here = os.open(self.root, os.O_RDONLY)
            try:
                door.bind(f"/proc/self/fd/{here}/socket")
            finally:
                os.close(here)

    def fill_in(self, line: str) -> str:
        return line.replace("{base}", str(self.base)).replace("{root}", str(self.root))

    def trials(self) -> list[Trial]:
        """Every mode with nobody there to ask, and a writer that may edit one folder."""
        reach = Reach(read=(self.root,), edit=(self.root / "memory",))
        return [Trial(mode, self._guard(mode)) for mode in PERMISSION_MODES] + [
            Trial("fork", ForkGuard(reach))
        ]

    def place(self) -> ToolContext:
        return ToolContext(
            root=self.root,
            cwd=self.root,
            session_folder=self.base / "home/session",
            environ={"HOME": f"{self.base}/user"},
        )

    def look(self) -> dict[str, tuple[int, ...]]:
        """Every file on the stage, by what a change of it would change."""
        return dict(self._looked(str(self.base)))

    def may_change(self, trial: Trial, path: str) -> bool:
        if trial.name == "bypass":
            # Everything but what its rules deny.
            return not any(Path(path).is_relative_to(self.base / name) for name in AROUND)
        if not Path(path).is_relative_to(self.root):
            return False
        parts = Path(path).relative_to(self.root).parts
        match trial.name:
            case "accept-edits":
                return not any(part.casefold() in GUARDED for part in parts)
            case "fork":
                return parts[0] == "memory"
            case _:
                return False

    def _guard(self, mode: PermissionMode) -> Guard:
        around = [f"edit({self.base}/{name}/**)" for name in AROUND]
        rules = parse_permission_rules(deny=around) if mode == "bypass" else PermissionRules()
        return Guard(
            mode=mode, rules=rules, root=self.root, home=self.base / "home", user_home=self.base / "user"
        )

    def _looked(self, folder: str) -> Iterator[tuple[str, tuple[int, ...]]]:
        for entry in os.scandir(folder):
            found = entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                yield entry.path, (found.st_ino,)
                yield from self._looked(entry.path)
            else:
                # A second name of a file that is replaced changes its links and nothing else.
                yield entry.path, (found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode)

    def _put(self, name: str, text: str) -> None:
        path = self.base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call of one tool."""

    tool: Tool
    given: JsonObject

    async def make(self, trial: Trial, stage: Stage, place: ToolContext) -> str:
        """What came of it, in words; what it says to the model where it was carried out."""
        use = ToolUse(ToolUseId("toolu_1"), self.tool.spec.name, self.given)
        try:
            need = self.tool.need(self.given, place)
            verdict = await trial.guard.admit(use, need)
        except SevenfoldError as error:
            return f"refused: {error}"
        if verdict.decision != "allow":
            return f"denied: {verdict.reason}"
        if not _is_on_stage(verdict, stage):
            # Nothing but `bypass` may get here, and not even a test should then go through with it.
            return "allowed elsewhere" if trial.name == "bypass" else "BROKEN OUT"
        for path in verdict.paths:
            _know(path, place)
        output = await self.tool.run(self.given, replace(place, admitted=verdict.paths), _unheard)
        return f"{'failed' if output.is_error else 'done'}: {output.content}"


def attempts(path: str) -> list[Attempt]:
    """Every file tool, pointed at one path."""
    return [
        Attempt(ReadTool(), freeze_object({"file_path": path})),
        Attempt(GlobTool(), freeze_object({"pattern": "**", "path": path})),
        Attempt(WriteTool(), freeze_object({"file_path": path, "content": "planted\n"})),
        Attempt(
            EditTool(), freeze_object({"file_path": path, "old_string": "text", "new_string": "planted"})
        ),
    ]


def _is_on_stage(verdict: PermissionVerdict, stage: Stage) -> bool:
    return all(Path(path).is_relative_to(stage.base) for path in verdict.paths)


def _know(real: str, place: ToolContext) -> None:
    """Have the agent know the file already, so that only permissions stand in its way."""
    if os.path.isfile(real) and os.path.getsize(real) < 1_000_000:
        data = Path(real).read_bytes()
        place.reads.note(real, ReadState(hashlib.sha256(data).hexdigest(), is_whole=True))


def _unheard(_text: str) -> None:
    """Nobody watches."""
