"""What a loop calls: `prepare` before each model call, `record` after it, `turn_ended` at a turn's end."""

from sevenfold.session.session import Session

__all__ = ["Session"]
