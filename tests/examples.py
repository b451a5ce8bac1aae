"""How many examples a property is tried with: few in `make test`, many in `make stories` and `make fuzz`.

The first two choose the same examples in every run, so that a change is judged by the change alone.
`make fuzz` looks for new ones: what it finds becomes an `@example` of its test.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

EVERYDAY, THOROUGH = 20, 100
FUZZ = 1_000
LEAST = 10


def register_profiles() -> None:
    # A busy machine is not a slow program, so time is judged by benchmarks, never by a property.
    for name, count in (("everyday", EVERYDAY), ("thorough", THOROUGH), ("fuzz", FUZZ)):
        settings.register_profile(
            name,
            max_examples=count,
            deadline=None,
            derandomize=name != "fuzz",
            suppress_health_check=[HealthCheck.too_slow],
        )
    settings.load_profile("everyday")


def up_to(count: int) -> int:
    """For a property whose examples take long: this many in `make stories`, in proportion elsewhere."""
    return max(min(count, LEAST), count * settings().max_examples // THOROUGH)
