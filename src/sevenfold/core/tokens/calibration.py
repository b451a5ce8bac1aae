"""Learning from the bill: how much more or less than estimated each class of content really cost.

A session starts from measured values and corrects them with every usage figure it sees. This is recursive
least squares over one factor a class, with a prior so that the first calls move it a little, and with heavy
tails so that a call with tokens nobody logged (a reminder, a hook, an image) moves it hardly at all.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeAlias

START_FACTOR = 1.02
"""Agents put some text into requests that no transcript holds: 2% more was billed than the logged content."""
SHARED_SPREAD = 0.3
"""How far a whole tokenizer may lie from ours: all factors move together. The known ones differ by 30%."""
OWN_SPREAD = 0.1
"""How far a class may lie from the others: languages and file types differ less than tokenizers."""
NOISE = 0.15
"""The error of a single call, as a share of its tokens, that says nothing about the factors."""
NOISE_FLOOR_TOKENS = 60.0
"""A short call is all overhead: its share of noise is larger than its size says."""
TAILS = 9.0
"""Errors past three times the noise count ever less: they come from what was not logged."""
LOWEST, HIGHEST = 0.4, 3.0
"""No text of any tokenizer we know lies outside; a factor that wants to is reading a broken bill."""
ABSURD_TOKENS = 1e9
"""A thousand of the largest windows in one call: no bill, whatever it says."""


Vector: TypeAlias = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TokenMix:
    """Estimated tokens by class. Negative where content left the prompt."""

    said: float = 0.0
    """The assistant's text and thinking."""
    asked: float = 0.0
    """Tool requests."""
    got: float = 0.0
    """Tool results."""
    told: float = 0.0
    """Everything else: people, reminders, attachments, memory, the system prompt, tool schemas."""

    @property
    def values(self) -> Vector:
        return (self.said, self.asked, self.got, self.told)

    def __add__(self, other: TokenMix) -> TokenMix:
        return TokenMix(*(mine + its for mine, its in zip(self.values, other.values, strict=True)))

    def times(self, factor: float) -> TokenMix:
        return TokenMix(*(factor * value for value in self.values))


TOKEN_CLASSES = tuple(item.name for item in fields(TokenMix))


def _first_spread() -> tuple[Vector, ...]:
    size = range(len(TOKEN_CLASSES))
    return tuple(tuple(SHARED_SPREAD**2 + (OWN_SPREAD**2 if i == j else 0.0) for j in size) for i in size)


@dataclass(frozen=True, slots=True)
class Calibration:
    factors: TokenMix = TokenMix(START_FACTOR, START_FACTOR, START_FACTOR, START_FACTOR)
    """Billed tokens for one estimated, by class."""
    spread: tuple[Vector, ...] = _first_spread()
    """How unsure each factor still is, and how they hang together: their covariance."""

    def estimate(self, mix: TokenMix) -> float:
        """The tokens that will be billed for this much of each class."""
        return _dot(self.factors.values, mix.values)

    def learn(self, mix: TokenMix, billed: float) -> Calibration:
        """The calibration after a bill. No new content, or a total that fell, teaches nothing."""
        gross = sum(abs(tokens) for tokens in mix.values)
        if not (0 < billed < ABSURD_TOKENS and 0 < gross < ABSURD_TOKENS):
            return self
        unit = NOISE * max(gross, NOISE_FLOOR_TOKENS)
        surprise = (billed - self.estimate(mix)) / unit
        parts = tuple(tokens / unit for tokens in mix.values)
        pulls = tuple(_dot(row, parts) for row in self.spread)
        # The tails: the larger the surprise, the noisier the call is taken to have been.
        total = 1 + surprise * surprise / TAILS + max(0.0, _dot(parts, pulls))
        factors = (
            _bounded(factor + pull * surprise / total)
            for factor, pull in zip(self.factors.values, pulls, strict=True)
        )
        spread = tuple(
            tuple(value - pull * other / total for value, other in zip(row, pulls, strict=True))
            for row, pull in zip(self.spread, pulls, strict=True)
        )
        return Calibration(TokenMix(*factors), spread)


def _bounded(factor: float) -> float:
    return min(HIGHEST, max(LOWEST, factor))


def _dot(left: Vector, right: Vector) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))
