"""How long a prompt may be, and when something has to be done about its length."""

from __future__ import annotations

from sevenfold.core.models import Model
from sevenfold.core.requests import RequestParams
from sevenfold.core.tokens.window import (
    Thresholds,
    WindowFacts,
    choose_window,
    narrow_thresholds,
    plan_thresholds,
)
from sevenfold.session.pipeline_settings import PipelineSettings


class WindowPlan:
    """The window of the model in use: by the catalogue, the settings, and what its provider has said."""

    __slots__ = ("_frame", "_model", "_settings", "learned", "thresholds", "tokens")

    def __init__(self, settings: PipelineSettings, frame: RequestParams, model: Model) -> None:
        self._settings = settings
        self.learned: dict[str, int] = {}
        """What providers have said they take at most, by model, in tokens as they are counted here."""
        self.tokens: int
        self.thresholds: Thresholds
        self.use(frame, model)

    def use(self, frame: RequestParams, model: Model) -> None:
        self._frame, self._model = frame, model
        settings, learned = self._settings, self.learned.get(frame.model)
        self.tokens = choose_window(frame.model, model, frame.betas, settings.window)
        facts = WindowFacts(
            self.tokens,
            model.max_output_tokens,
            settings.compact.is_automatic,
            settings.compact.auto_compact_pct,
        )
        self.thresholds = plan_thresholds(facts, settings.window)
        if learned is not None:
            self.tokens = min(self.tokens, learned)
            self.thresholds = narrow_thresholds(self.thresholds, learned)

    def learn(self, model: str, limit_tokens: int) -> None:
        """The provider of this model takes no longer prompts than this, whatever the catalogue says."""
        self.learned[model] = limit_tokens
        self.use(self._frame, self._model)
