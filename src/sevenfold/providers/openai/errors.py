"""What the OpenAI SDK raises, as errors of ours."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sevenfold.core.errors import InputError, ProviderError
from sevenfold.providers import error_map

if TYPE_CHECKING:
    from openai import OpenAIError


@contextmanager
def map_openai_errors(*, is_answering: bool = False) -> Generator[None]:
    """What goes wrong leaves as a `ProviderError`; once an answer has begun, it is the answer that failed."""
    import openai

    try:
        with error_map.map_transport():
            yield
    except openai.OpenAIError as error:
        raise map_openai_error(error, is_answering=is_answering) from error
    except UnicodeEncodeError as error:
        raise InputError(f"a text cannot be sent by this client: {error}; replace the character") from error


def map_openai_error(error: OpenAIError, *, is_answering: bool = False) -> ProviderError:
    """The error of ours that stands for one of the SDK's."""
    import openai

    match error:
        case openai.APIStatusError():
            headers = {name.lower(): value for name, value in error.response.headers.items()}
            fault = error_map.read_provider_fault(error.message, error.status_code, error.body, headers)
            return error_map.map_fault(fault)
        case openai.APIConnectionError():
            return (
                error_map.make_broken_error(error)
                if is_answering
                else error_map.make_unreachable_error(error)
            )
        case openai.APIResponseValidationError():
            return error_map.make_broken_error(error)
        case openai.APIError():
            # An error in the middle of a stream, which has no status.
            return error_map.map_fault(error_map.read_provider_fault(error.message, None, error.body, {}))
        case _ if "api_key" in str(error) or "credentials" in str(error):
            return error_map.make_sign_in_error(error)
        case _:
            return error_map.make_unsent_error(error)
