"""The policies that a recorded session can be played under, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sevenfold.layers.microcompact.policy import MicrocompactSettings

DEFAULT_POLICY = "balanced"
"""What `sevenfold` means where a policy is asked for."""

CLEARING_POLICIES: Mapping[str, MicrocompactSettings] = MappingProxyType(
    {
        "keep": MicrocompactSettings(policy="keep"),
        "fixed": MicrocompactSettings(policy="fixed"),
        "ski": MicrocompactSettings(policy="ski", by_pressure=False),
        "thrift": MicrocompactSettings(policy="thrift", by_pressure=False),
        "balanced": MicrocompactSettings(policy="balanced", by_pressure=False),
    }
)
"""What clearing by pressure wins is a compaction put off; recorded boundaries stand where they stood, so that
only `fixed`, which consists of it, has it here."""
