"""Errors as the SDK meets them."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import anthropic
import pytest
from anthropic import Anthropic
from anthropic.types import Message

from sevenfold.core.errors import CallUnexpected
from sevenfold.testing import Prompt, Simulator, StatusFault, script
from tests.simulator.asking import MODEL, Asker

SOON = timedelta(milliseconds=1)
CLASSES = {
    400: anthropic.BadRequestError,
    401: anthropic.AuthenticationError,
    403: anthropic.PermissionDeniedError,
    404: anthropic.NotFoundError,
    409: anthropic.ConflictError,
    413: anthropic.APIStatusError,
    429: anthropic.RateLimitError,
    500: anthropic.InternalServerError,
    504: anthropic.APIStatusError,
    529: anthropic.InternalServerError,
}
TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def hello(client: Anthropic) -> Message:
    return client.messages.create(model=MODEL, max_tokens=9, messages=[{"role": "user", "content": "Hi"}])


@pytest.mark.rule("errors-1")
def test_an_error_has_one_shape(ask: Asker) -> None:
    answer = ask.create("Hi", model="nobody")
    assert list(answer.body) == ["type", "error", "request_id"]
    assert (answer.at("type"), answer.at("request_id")) == ("error", answer.headers["request-id"])
    ask.sim.fail(StatusFault(status=429, code="ramp_limit_exceeded"))
    assert ask.create("Hi").code == "ramp_limit_exceeded"


@pytest.mark.rule("errors-1")
def test_the_sdk_reads_the_code(sim: Simulator, client: Anthropic) -> None:
    sim.fail(StatusFault(status=400, message="Slow down.", code="ramp_limit_exceeded"))
    with pytest.raises(anthropic.BadRequestError) as caught:
        hello(client)
    assert caught.value.error_code == "ramp_limit_exceeded"
    assert caught.value.request_id == sim.last.request_id


@pytest.mark.rule("errors-2")
@pytest.mark.parametrize("status", TYPES)
def test_each_status_has_its_type_and_class(sim: Simulator, client: Anthropic, status: int) -> None:
    sim.fail(StatusFault(status=status))
    with pytest.raises(CLASSES.get(status, anthropic.APIStatusError)) as caught:
        hello(client)
    assert (caught.value.status_code, caught.value.type) == (status, TYPES[status])


@pytest.mark.rule("errors-3")
@pytest.mark.parametrize("status", [409, 429, 500, 504, 529])
def test_the_sdk_tries_again(sim: Simulator, patient: Anthropic, status: int) -> None:
    sim.fail(StatusFault(status=status, retry_after=SOON), times=2)
    assert hello(patient).content
    assert [entry.status for entry in sim.ledger.entries] == [status, status, 200]


@pytest.mark.rule("errors-3")
def test_the_async_sdk_tries_again(sim: Simulator) -> None:
    sim.fail(StatusFault(status=529, retry_after=SOON), times=2)

    async def ask() -> Message:
        async with sim.async_client() as client:
            return await client.messages.create(
                model=MODEL, max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
            )

    assert asyncio.run(ask()).content
    assert len(sim.ledger.entries) == 3


@pytest.mark.rule("errors-3")
def test_the_sdk_gives_up_after_its_retries(sim: Simulator, patient: Anthropic) -> None:
    sim.fail(StatusFault(status=529, retry_after=SOON), times=9)
    with pytest.raises(anthropic.InternalServerError):
        hello(patient)
    assert len(sim.ledger.entries) == 3


@pytest.mark.rule("errors-3")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 413])
def test_the_sdk_does_not_repeat_what_is_wrong(sim: Simulator, patient: Anthropic, status: int) -> None:
    sim.fail(StatusFault(status=status, retry_after=SOON))
    with pytest.raises(anthropic.APIStatusError):
        hello(patient)
    assert len(sim.ledger.entries) == 1


@pytest.mark.rule("errors-3")
@pytest.mark.parametrize(
    ("wait", "seconds", "milliseconds"),
    [(timedelta(seconds=7), "7", None), (timedelta(milliseconds=1500), "1", "1500")],
)
def test_how_long_to_wait_is_told_in_seconds(
    ask: Asker, wait: timedelta, seconds: str, milliseconds: str | None
) -> None:
    ask.sim.fail(StatusFault(status=429, retry_after=wait))
    headers = ask.create("Hi").headers
    assert (headers["retry-after"], headers.get("retry-after-ms")) == (seconds, milliseconds)


@pytest.mark.rule("errors-4")
@pytest.mark.parametrize(("status", "should", "requests"), [(529, False, 1), (400, True, 2)])
def test_the_server_can_say_whether_to_retry(
    sim: Simulator, patient: Anthropic, status: int, should: bool, requests: int
) -> None:
    sim.fail(StatusFault(status=status, retry_after=SOON, should_retry=should))
    if should:
        hello(patient)
    else:
        with pytest.raises(anthropic.APIStatusError):
            hello(patient)
    assert len(sim.ledger.entries) == requests


@pytest.mark.rule("errors-5")
def test_a_spend_cap_says_no_time(sim: Simulator, client: Anthropic) -> None:
    sim.fail(StatusFault(status=429, code="enforced_spend_limit_reached"))
    with pytest.raises(anthropic.RateLimitError) as caught:
        hello(client)
    assert caught.value.error_code == "enforced_spend_limit_reached"
    assert "retry-after" not in caught.value.response.headers


@pytest.mark.rule("errors-6")
def test_a_compaction_that_is_unavailable_is_an_overload(sim: Simulator, client: Anthropic) -> None:
    sim.fail(StatusFault(status=529, code="compaction_unavailable"))
    with pytest.raises(anthropic.InternalServerError) as caught:
        client.beta.messages.create(
            model=MODEL,
            max_tokens=9,
            messages=[{"role": "user", "content": "Hi"}],
            betas=["compact-2026-09-04"],
            compaction={"type": "summarize"},
        )
    assert (caught.value.type, caught.value.error_code) == ("overloaded_error", "compaction_unavailable")


def test_a_brain_that_fails_is_told_to_the_client_once_and_to_the_test(
    running: Simulator, patient: Anthropic
) -> None:
    def broken(prompt: Prompt) -> str:
        raise KeyError(prompt.number)

    running.reset(broken)
    with pytest.raises(anthropic.InternalServerError, match="KeyError: 1"):
        hello(patient)
    assert len(running.ledger.entries) == 1
    with pytest.raises(KeyError):
        running.check()


def test_a_request_that_is_not_in_the_script_is_not_retried(running: Simulator, patient: Anthropic) -> None:
    running.reset(script())
    with pytest.raises(anthropic.InternalServerError, match="not in the script"):
        hello(patient)
    assert len(running.ledger.entries) == 1
    with pytest.raises(CallUnexpected, match="every step is used up"):
        running.check()
