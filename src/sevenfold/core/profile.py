"""What may hold a command while it runs."""

from __future__ import annotations

from typing import Literal, TypeAlias

SandboxProfile: TypeAlias = Literal["read-only", "workspace", "open"]
"""Strictest first. `read-only`: it changes nothing and reaches no network; `workspace`: it also writes in the
project's folder and in a scratch folder of its own; `open`: nothing holds it."""
