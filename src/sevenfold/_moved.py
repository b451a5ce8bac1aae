"""Old import paths of public names. They still work, and warn with the new path."""

from __future__ import annotations

import sys
from types import MappingProxyType, ModuleType

TYPE_CHECKING = False
"""As in `typing`, which takes as long to import as an interpreter takes to start."""
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec

MOVED = MappingProxyType(
    {
        "sevenfold.blocking": {"Session": "sevenfold.session.blocking:BlockingSession"},
        "sevenfold.core.catalog": {
            "CATALOG": "sevenfold.core.prices:CATALOG",
            "Catalog": "sevenfold.core.prices:Catalog",
            "build_catalog": "sevenfold.core.prices:build_catalog",
        },
        "sevenfold.core.provenance": {"Origin": "sevenfold.core.memories:Origin"},
        "sevenfold.engine": {"Session": "sevenfold.session.session:Session"},
        "sevenfold.providers.openai_chat": {"ChatProvider": "sevenfold.providers.openai:ChatProvider"},
        "sevenfold.providers.openai_responses": {
            "ResponsesProvider": "sevenfold.providers.openai:ResponsesProvider"
        },
        "sevenfold.simulator.wire.request_blocks": {
            "CacheEditingProvider": "sevenfold.simulator.wire.messages_request:CacheEditingProvider"
        },
        "sevenfold.store.memory_changes": {"Write": "sevenfold.store.memory.changes:Write"},
        "sevenfold.store.memory_dir": {"MemoryDir": "sevenfold.store.memory.directory:MemoryDir"},
        "sevenfold.store.records": {
            "MessageRecord": "sevenfold.store.transcript.records:MessageRecord",
            "Record": "sevenfold.store.transcript.records:Record",
        },
        "sevenfold.store.sessions": {
            "new_session_id": "sevenfold.store.transcript.transcript:new_session_id"
        },
        "sevenfold.store.transcript_reader": {"resume": "sevenfold.store.transcript.reader:resume"},
        "sevenfold.sync": {},
        "sevenfold.sync.team_memory": {"TeamMemory": "sevenfold.team.client.memory:TeamMemory"},
    }
)
"""Each old module, and where each of its public names is now."""


class _MovedModule(ModuleType):
    """Stands where a module was, and hands out its public names with a deprecation."""

    def __getattr__(self, name: str) -> object:
        target = MOVED[self.__name__].get(name)
        if target is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        from importlib import import_module
        from warnings import warn

        module, _, attribute = target.partition(":")
        warn(f"import {attribute} from {module}; {self.__name__} has moved", DeprecationWarning, stacklevel=2)
        return getattr(import_module(module), attribute)


class MovedFinder:
    """Finds the modules of `MOVED`. Python asks it last, after all that exist."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname not in MOVED:
            return None
        from importlib.machinery import ModuleSpec
        from typing import cast

        return ModuleSpec(fullname, cast("Loader", self), is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _MovedModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run: names are looked up when they are asked for."""


def install_finder() -> None:
    """Have Python ask us for modules that it cannot find; once, however often this is called."""
    if not any(isinstance(finder, MovedFinder) for finder in sys.meta_path):
        sys.meta_path.append(MovedFinder())
