"""Everything an SDK or HTTP can raise is mapped, and what a server says of a long prompt is understood."""

from __future__ import annotations

import asyncio
import inspect
import sys
from datetime import timedelta
from types import SimpleNamespace

import anthropic
import httpx2
import openai
import pytest

from sevenfold.core.errors import (
    InputError,
    Overloaded,
    PromptTooLong,
    ProviderError,
    ProviderRefused,
    ProviderUnreachable,
    RateLimited,
    ReplyBroken,
    SignInRefused,
)
from sevenfold.providers.anthropic import AnthropicProvider, map_anthropic_error, map_anthropic_errors
from sevenfold.providers.error_map import (
    PromptOverflow,
    make_broken_error,
    map_fault,
    read_overflow,
    read_provider_fault,
)
from sevenfold.providers.openai import ChatProvider, ResponsesProvider, map_openai_error, map_openai_errors
from tests.providers.asking import ask

MAXIMUM = "This model's maximum context length is"
REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1/messages")


def every(root: type[Exception]) -> list[type[Exception]]:
    found = [root, *(kind for child in root.__subclasses__() for kind in every(child))]
    return list(dict.fromkeys(found))


def raised(kind: type[Exception], status: int = 400, body: object = None) -> Exception:
    """One of a class of errors, made as whoever raises it would, with whatever its constructor asks for."""
    response = httpx2.Response(status, request=REQUEST)
    known: dict[str, object] = {
        "message": "No.",
        "request": REQUEST,
        "response": response,
        "body": body,
        "completion": SimpleNamespace(usage=None),
        "unsent_messages": [],
    }
    wanted = list(inspect.signature(kind.__init__).parameters.values())[1:]
    if any(item.kind is inspect.Parameter.VAR_POSITIONAL for item in wanted):
        return kind("No.")
    given = {
        item.name: known.get(item.name, "word")
        for item in wanted
        if item.name in known or item.default is inspect.Parameter.empty
    }
    return kind(**given)


@pytest.mark.parametrize("kind", every(anthropic.AnthropicError), ids=lambda kind: kind.__name__)
def test_every_class_of_the_sdk_has_an_error_of_ours(kind: type[anthropic.AnthropicError]) -> None:
    status = getattr(kind, "status_code", 500)
    error = raised(kind, status if isinstance(status, int) else 500)
    assert isinstance(error, anthropic.AnthropicError)
    told = map_anthropic_error(error)
    assert type(told) is not ProviderError
    assert str(told)


@pytest.mark.parametrize(
    "kind",
    [*every(httpx2.HTTPError), *every(httpx2.StreamError), httpx2.InvalidURL],
    ids=lambda kind: kind.__name__,
)
def test_every_class_of_http_has_an_error_of_ours(kind: type[Exception]) -> None:
    with pytest.raises((ReplyBroken, ProviderUnreachable)), map_anthropic_errors():
        raise raised(kind)


@pytest.mark.parametrize("kind", every(openai.OpenAIError), ids=lambda kind: kind.__name__)
def test_every_class_of_the_other_sdk_has_one_too(kind: type[openai.OpenAIError]) -> None:
    status = getattr(kind, "status_code", 500)
    error = raised(kind, status if isinstance(status, int) else 500)
    assert isinstance(error, openai.OpenAIError)
    told = map_openai_error(error)
    assert type(told) is not ProviderError
    assert str(told)


def test_a_connection_that_breaks_once_an_answer_has_begun_breaks_the_answer() -> None:
    error = openai.APIConnectionError(request=REQUEST)
    assert type(map_openai_error(error)) is ProviderUnreachable
    assert type(map_openai_error(error, is_answering=True)) is ReplyBroken
    with pytest.raises(ReplyBroken), map_openai_errors():
        raise httpx2.ReadError("gone")
    with pytest.raises(InputError), map_openai_errors():
        "\ud83d".encode()


def test_an_address_that_cannot_be_reached_is_named_without_its_password() -> None:
    request = httpx2.Request("POST", "http://ann:secret@127.0.0.1:9/v1/messages")
    error = anthropic.APIConnectionError(request=request)
    error.__cause__ = httpx2.ConnectError("All connection attempts failed")
    text = "http://127.0.0.1:9 cannot be reached: ConnectError: All connection attempts failed"
    assert str(map_anthropic_error(error)) == text


def test_a_mistake_of_our_own_is_not_taken_for_the_providers() -> None:
    with pytest.raises(TypeError, match="mistake"), map_anthropic_errors():
        raise TypeError("mistake")
    with pytest.raises(KeyError), map_anthropic_errors():
        raise KeyError("mistake")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (anthropic.BadRequestError, ProviderRefused),
        (anthropic.AuthenticationError, SignInRefused),
        (anthropic.PermissionDeniedError, SignInRefused),
        (anthropic.ConflictError, ProviderRefused),
        (anthropic.RequestTimeoutError, Overloaded),
        (anthropic.ContentTooLargeError, PromptTooLong),
        (anthropic.RateLimitError, RateLimited),
        (anthropic.OverloadedError, Overloaded),
        (anthropic.APITimeoutError, ProviderUnreachable),
        (anthropic.APIResponseValidationError, ReplyBroken),
        (anthropic.IdentityTokenFileError, SignInRefused),
    ],
)
def test_the_sdks_errors_mean_what_they_say(
    kind: type[anthropic.AnthropicError], expected: type[ProviderError]
) -> None:
    status = getattr(kind, "status_code", 500)
    error = raised(kind, status if isinstance(status, int) else 500)
    assert isinstance(error, anthropic.AnthropicError)
    assert type(map_anthropic_error(error)) is expected


SAID = [
    ("prompt is too long: 200251 tokens > 200000 maximum", 200_251, 200_000),
    ("input length and `max_tokens` exceed context limit: 19 + 320 > 2000, decrease either", 19, 1_680),
    (f"{MAXIMUM} 8192 tokens. However, your messages resulted in 9739 tokens. Please reduce", 9_739, 8_192),
    (
        f"{MAXIMUM} 4097 tokens, however you requested 4116 tokens (3860 in your prompt; 256 for the "
        "completion).",
        3_860,
        3_841,
    ),
    (
        f"{MAXIMUM} 128,000 tokens. However, you requested 132946 tokens (122946 in the messages, 10000 in "
        "the completion). Please reduce the length of the messages or completion.",
        122_946,
        118_000,
    ),
    (
        f"{MAXIMUM} 8192 tokens. However, you requested 512 output tokens and your prompt contains at least "
        "9739 input tokens, for a total of at least 10251 tokens.",
        9_739,
        7_680,
    ),
    (
        f"'max_tokens' or 'max_completion_tokens' is too large: 2000. {MAXIMUM} 4096 tokens and your request "
        "has 2104 input tokens (2000 > 4096 - 2104).",
        2_104,
        2_096,
    ),
    (f"{MAXIMUM} 4096 tokens. However, your request has 5000 input tokens.", 5_000, 4_096),
    ("The decoder prompt (length 4097) is longer than the maximum model length of 4096.", 4_097, 4_096),
    (
        "The prompt (total length 25938) is too long to fit into the model (context length 4096).",
        25_938,
        4_096,
    ),
    ("request (9739 tokens) exceeds the available context size (8192 tokens), try increasing", 9_739, 8_192),
    ("Requested tokens (2285) exceed context window of 2048", 2_285, 2_048),
    (
        "Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded "
        "with context length of only 7866 tokens, which is not enough.",
        10_136,
        7_866,
    ),
    ("Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)", 15_028, 7_424),
    ("the request exceeds the available context size. try increasing the context size", None, None),
    ("prompt too long; exceeded max context length by 4 tokens", None, None),
    ("the input length exceeds the context length", None, None),
    ("Your input exceeds the context window of this model. Please adjust your input.", None, None),
    ("Context size has been exceeded.", None, None),
    ("The number of tokens to keep from the initial prompt is greater than the context length", None, None),
]


@pytest.mark.parametrize(("text", "tokens", "limit"), SAID)
def test_what_servers_say_of_a_long_prompt_is_understood(
    text: str, tokens: int | None, limit: int | None
) -> None:
    assert read_overflow(text) == PromptOverflow(tokens, limit)


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens: 200000 > 128000, which is the maximum allowed number of output tokens for this model",
        "messages.0: a user message must not be empty",
        "input length and `max_tokens` exceed context limit: 10 + 300000 > 200000",
        "Overloaded",
        "",
    ],
)
def test_other_complaints_are_not_taken_for_a_long_prompt(text: str) -> None:
    assert read_overflow(text) is None


def test_a_code_decides_whatever_the_words() -> None:
    body = {
        "error": {"message": "Too big!", "type": "invalid_request_error", "code": "context_length_exceeded"}
    }
    error = map_fault(read_provider_fault("", 400, body, {}))
    assert isinstance(error, PromptTooLong)
    assert (error.tokens, error.limit, error.overshoot) == (None, None, None)


def test_llama_cpp_gives_its_figures_as_fields() -> None:
    said = {
        "code": 500,
        "message": "Zu lang",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 1407,
        "n_ctx": 256,
    }
    error = map_fault(read_provider_fault("", 500, {"error": said}, {}))
    assert isinstance(error, PromptTooLong)
    assert (error.tokens, error.limit, error.overshoot) == (1_407, 256, 1_151)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"type": "error", "error": {"type": "api_error", "message": "Deep"}}, "Deep"),
        ({"message": "Flat", "code": 7}, "Flat"),
        ({"error": "Text"}, "Text"),
        ({"detail": "From a framework"}, "From a framework"),
        ("Plain text", "Plain text"),
        (["odd"], "as the SDK says it"),
        (None, "as the SDK says it"),
    ],
)
def test_a_body_of_any_shape_gives_its_message(body: object, message: str) -> None:
    assert read_provider_fault("as the SDK says it", 400, body, {}).message == message


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "7"}, timedelta(seconds=7)),
        ({"retry-after-ms": "1500", "retry-after": "7"}, timedelta(seconds=1.5)),
        ({"retry-after": "-3"}, timedelta()),
        ({"retry-after": "1e99"}, timedelta(days=30)),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        (
            {"retry-after": "Wed, 21 Oct 2026 07:28:10 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"},
            timedelta(seconds=10),
        ),
        ({}, None),
    ],
)
def test_how_long_to_wait_is_read_in_every_form(headers: dict[str, str], expected: timedelta | None) -> None:
    error = map_fault(read_provider_fault("slow down", 429, None, headers))
    assert isinstance(error, RateLimited)
    assert error.retry_after == expected


def test_only_what_may_pass_says_so() -> None:
    passing = {kind for kind in every(ProviderError) if issubclass(kind, ProviderError) and kind.may_pass}
    assert passing == {RateLimited, Overloaded, ReplyBroken, ProviderUnreachable}


@pytest.mark.parametrize(
    ("library", "provider"),
    [("anthropic", AnthropicProvider), ("openai", ChatProvider), ("openai", ResponsesProvider)],
)
def test_without_its_library_a_provider_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
    library: str,
    provider: type[AnthropicProvider] | type[ChatProvider] | type[ResponsesProvider],
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InputError, match=rf"pip install .*\[{library}\]'"):
        asyncio.run(provider().send(ask()))


def test_an_error_that_repeats_its_cause_says_it_once() -> None:
    error, cause = RuntimeError("peer closed the connection"), OSError("peer closed the connection")
    error.__cause__ = cause
    assert str(make_broken_error(error)).count("peer closed") == 1
    error.__cause__ = OSError("reset by 10.0.0.1")
    assert "reset by" in str(make_broken_error(error))
