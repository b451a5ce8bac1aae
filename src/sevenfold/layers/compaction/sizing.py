"""How large a view would be that nobody has sent yet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sevenfold.core.messages import Message, Text
from sevenfold.core.models import Model
from sevenfold.core.tokens import CALIBRATED_ESTIMATOR, NEWER_TOKENIZER_SCALE
from sevenfold.core.tokens.estimators import WeighBlock
from sevenfold.layers.compaction.job import CompactionJob


@dataclass(frozen=True, slots=True)
class ViewSizer:
    """Estimates for one job: its own counts where a message is the view's, weighed where it is new."""

    scale: float
    frame_tokens: int
    weigh: WeighBlock = CALIBRATED_ESTIMATOR.weigh
    """What a block weighs, before the scale."""

    @classmethod
    def for_job(cls, job: CompactionJob, model: Model) -> ViewSizer:
        rest = max(0, job.tokens_before - sum(job.counts))
        frame_tokens = rest if job.frame_tokens is None else job.frame_tokens
        if job.weigh is not None:
            return cls(1.0, frame_tokens, job.weigh)
        return cls(NEWER_TOKENIZER_SCALE if model.tokenizer == "newer" else 1.0, frame_tokens)

    def text(self, text: str) -> int:
        return math.ceil(self.weigh(Text(text)) * self.scale)

    def message(self, message: Message) -> int:
        return math.ceil(sum(self.weigh(block) for block in message.blocks) * self.scale)

    def messages(self, messages: Iterable[Message]) -> int:
        return sum(map(self.message, messages))

    def rewritten(self, new: Sequence[Message], job: CompactionJob, start: int = 0) -> int:
        """Messages of the view from `start` on, some of which may have been rewritten, one for one."""
        old = job.request.messages[start : start + len(new)]
        counts = job.counts[start : start + len(new)]
        pairs = zip(new, old, counts, strict=True)
        return sum(count if one is other else self.message(one) for one, other, count in pairs)
