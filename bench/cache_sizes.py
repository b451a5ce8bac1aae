"""How large each block of a session is: estimated, then settled by what the prompts were billed."""

from __future__ import annotations

from collections.abc import Sequence

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import read_block
from sevenfold.core.tokens.estimation import weigh_by_shape

FRAME = JsonObject({"type": "text", "text": "(system prompt and tools: in no log)"})


class Sizes:
    """Tokens by the identity of a block, which must outlive this."""

    def __init__(self) -> None:
        self._settled: dict[int, int] = {}
        self._weights: dict[int, int] = {}

    def of(self, block: JsonObject) -> int:
        """As settled, or else as estimated."""
        settled = self._settled.get(id(block))
        return self._weight(block) if settled is None else settled

    def shortfall(self, blocks: Sequence[JsonObject], total: int) -> int:
        """How much shorter the bill is than the blocks."""
        return sum(map(self.of, blocks)) - total

    def settle(self, blocks: Sequence[JsonObject], total: int) -> None:
        """Share out what was billed beyond the blocks that are settled among those that are not."""
        if id(FRAME) not in self._settled:
            # The first bill: whatever the messages do not explain is the frame around them.
            self._settled[id(FRAME)] = max(
                1, total - sum(self.of(block) for block in blocks if block is not FRAME)
            )
        old = [block for block in blocks if id(block) in self._settled]
        new = [block for block in blocks if id(block) not in self._settled]
        rest = total - sum(map(self.of, old))
        if rest < len(new):
            self._take(old, len(new) - rest)
            rest = len(new)
        self._share(new or old[-1:], rest, is_new=bool(new))

    def _take(self, blocks: Sequence[JsonObject], tokens: int) -> None:
        """From the newest back, since what comes and goes (a reminder, a hook's output) stands at the end."""
        for block in reversed(blocks):
            taken = min(tokens, self._settled[id(block)] - 1)
            self._settled[id(block)] -= taken
            tokens -= taken

    def _share(self, blocks: Sequence[JsonObject], tokens: int, *, is_new: bool) -> None:
        if not is_new:
            self._settled[id(blocks[-1])] += tokens
            return
        weights = [self._weight(block) for block in blocks]
        given = weighed = 0
        for block, weight in zip(blocks, weights, strict=True):
            weighed += weight
            until = tokens * weighed // sum(weights)
            self._settled[id(block)], given = until - given, until

    def _weight(self, block: JsonObject) -> int:
        known = self._weights.get(id(block))
        if known is None:
            known = self._weights[id(block)] = max(1, round(weigh_by_shape(read_block(block))))
        return known
