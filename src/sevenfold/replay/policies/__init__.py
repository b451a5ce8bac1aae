"""What a recorded session would have cost under each policy for clearing tool results.

- `recording`: a recorded session as a policy sees it: rounds, clearable results, messages.
- `fidelity`: which earlier results later calls use, and what a cut took out of view.
- `counterfactual`: plays a session under a policy by token counts alone.
- `resend`: sends a session through the real request path, against the cache model.
- `saving`: what the default policy would have saved, as a range and in a moment.
- `policy_trial`: all of these for one policy and many sessions, and the cheapest cuts with hindsight.

The policies themselves are listed below, by name.
"""

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
