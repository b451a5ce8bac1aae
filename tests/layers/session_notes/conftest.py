"""The fixtures of the store: what these tests write is durable too."""

from __future__ import annotations

from tests.store.conftest import events, no_handle_left_open

__all__ = ["events", "no_handle_left_open"]
