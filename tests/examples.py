"""With how many examples a property is tried: a few in `make test`, many in `make stories`."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

EVERYDAY, THOROUGH = 20, 100
LEAST = 10


def register_profiles() -> None:
    # A busy machine is not a slow program, so time is judged by benchmarks, never by a property.
    for name, count in (("everyday", EVERYDAY), ("thorough", THOROUGH)):
        settings.register_profile(
            name, max_examples=count, deadline=None, suppress_health_check=[HealthCheck.too_slow]
        )
    settings.load_profile("everyday")


def up_to(count: int) -> int:
    """For a property whose examples take long: this many in `make stories`, fewer in `make test`."""
    profile = settings().max_examples
    return count if profile >= THOROUGH else max(min(count, LEAST), count * profile // THOROUGH)
