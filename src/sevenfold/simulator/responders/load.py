"""A brain by the name that a command line gives it."""

from __future__ import annotations

from pathlib import Path

from sevenfold.core.errors import ScriptError
from sevenfold.simulator.responders.brain_protocol import Brain
from sevenfold.simulator.responders.echo import EchoBrain
from sevenfold.simulator.responders.recorded import read_recording
from sevenfold.simulator.responders.script_file import read_script


def load_brain(name: str) -> Brain:
    """`echo`, a `.yaml` script, or a `.jsonl` recording."""
    if name == "echo":
        return EchoBrain()
    path = Path(name)
    match path.suffix.lower():
        case ".yaml" | ".yml":
            return read_script(path)
        case ".jsonl":
            return read_recording(path)
        case _:
            raise ScriptError(f"brain {name!r} is unknown; expected echo, a script.yaml or a session.jsonl")
