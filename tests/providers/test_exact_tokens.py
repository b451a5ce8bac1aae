"""With the tokenizer of a model at hand, what nobody has billed is counted by it, offline."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from sevenfold.core.errors import SettingsError
from sevenfold.core.extras import render_install_command
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import (
    Image,
    Message,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    ToolUseId,
)
from sevenfold.core.requests import RequestParams
from sevenfold.core.tokens import SAFETY_FACTOR
from sevenfold.core.tokens.estimation import MEDIA_TOKENS
from sevenfold.providers.local import open_exact_estimator
from sevenfold.session.blocking import BlockingSession

USE = ToolUseId("t1")


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    """One that counts words."""
    made = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    made.pre_tokenizer = Whitespace()
    path = tmp_path / "tokenizer.json"
    made.save(str(path))
    return path


@pytest.mark.parametrize(
    ("block", "tokens"),
    [
        (Text("one two three"), 3),
        (Text(""), 0),
        (Text("half \ud83d of it"), 4),
        (Thinking("hm hm"), 2),
        (RedactedThinking(""), 0),
        (ToolUse(USE, "look", JsonObject({})), 2),
        (ToolResult(USE, "a b"), 2),
        (ToolResult(USE, (Text("a b"), Image(JsonObject({})))), 2 + MEDIA_TOKENS),
    ],
)
def test_every_block_is_counted_by_its_words(tokenizer: Path, block: Text, tokens: float) -> None:
    assert open_exact_estimator(tokenizer).weigh(block) == tokens


def test_a_session_counts_with_it_until_a_bill_comes(tokenizer: Path) -> None:
    exact = {"window": {"estimator": "exact", "tokenizer": str(tokenizer)}}
    with BlockingSession.open(
        RequestParams(model="gpt-5.6", max_tokens=1_000), project=None, settings=exact
    ) as session:
        session.history.append(Message("user", "word " * 900))
        assert session.prepare().tokens == 900 * SAFETY_FACTOR


def test_the_plain_rule_can_be_chosen_by_name() -> None:
    settings = {"window": {"estimator": "plain"}}
    with BlockingSession.open(
        RequestParams(model="gpt-5.6", max_tokens=1_000), project=None, settings=settings
    ) as session:
        session.history.append(Message("user", "word" * 900))
        assert session.prepare().tokens == 900 * SAFETY_FACTOR


@pytest.mark.parametrize("content", [None, "{}", "no json"])
def test_what_is_no_tokenizer_is_refused_when_a_session_is_opened(
    tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_text(content)
    settings = {"window": {"estimator": "exact", "tokenizer": str(path)}}
    with pytest.raises(SettingsError, match=r"name the tokenizer\.json of your model"):
        BlockingSession.open(
            RequestParams(model="gpt-5.6", max_tokens=1_000), project=None, settings=settings
        )


def test_exact_without_a_tokenizer_says_what_is_missing() -> None:
    settings = {"window": {"estimator": "exact"}}
    with pytest.raises(SettingsError, match=r"window\.tokenizer"):
        BlockingSession.open(
            RequestParams(model="gpt-5.6", max_tokens=1_000), project=None, settings=settings
        )


def test_without_the_extra_it_is_said_what_to_install(
    tokenizer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(SettingsError, match=re.escape(render_install_command("search"))):
        open_exact_estimator(tokenizer)
