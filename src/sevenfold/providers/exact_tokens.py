"""Counts tokens offline with a model's own tokenizer; needs the extra `search`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from sevenfold.core.errors import SettingsError
from sevenfold.core.text.safe_text import replace_lone_surrogates
from sevenfold.core.tokens.estimation import EXACT_ESTIMATOR_NAME, TokenEstimator, weigh_exactly


def open_exact_estimator(path: Path) -> TokenEstimator:
    """Counts as this `tokenizer.json` says. Bills do not correct it: what differs is the model's template."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise SettingsError(
            "window.estimator = 'exact' needs the package tokenizers; pip install 'sevenfold[search]'"
        ) from error
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises no class of its own
        raise SettingsError(
            f"window.tokenizer = '{path}' cannot be read: {error}; name the tokenizer.json of your model"
        ) from error

    def count(text: str) -> float:
        return len(tokenizer.encode(replace_lone_surrogates(text), add_special_tokens=False).ids)

    return TokenEstimator(EXACT_ESTIMATOR_NAME, partial(weigh_exactly, count=count), calibrates=False)
