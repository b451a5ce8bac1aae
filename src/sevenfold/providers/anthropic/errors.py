"""What the Anthropic SDK raises, as errors of ours."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sevenfold.core.errors import InputError, ProviderError
from sevenfold.providers import error_map

if TYPE_CHECKING:
    from anthropic import AnthropicError


@contextmanager
def map_anthropic_errors() -> Generator[None]:
    """Everything that goes wrong while a request is sent or an answer read leaves as a `ProviderError`."""
    import anthropic

    try:
        with error_map.map_transport():
            yield
    except anthropic.AnthropicError as error:
        raise map_anthropic_error(error) from error
    except UnicodeEncodeError as error:
        raise InputError(
            f"a text holds half a character, {error.object[error.start : error.end]!r}, which this client "
            "cannot send; replace it, or use a client without middleware"
        ) from error
    except TypeError as error:
        # This is how the SDK says that it has no key; any other is a mistake of ours.
        if "authentication" not in str(error):
            raise
        raise error_map.make_sign_in_error(error) from error


def map_anthropic_error(error: AnthropicError) -> ProviderError:
    """The error of ours that stands for one of the SDK's."""
    import anthropic

    match error:
        case anthropic.APIStatusError():
            status = error.status_code if error.status_code >= 400 else None
            headers = {name.lower(): value for name, value in error.response.headers.items()}
            return error_map.map_fault(
                error_map.read_provider_fault(error.message, status, error.body, headers)
            )
        case anthropic.APIConnectionError() | anthropic.RetryableError():
            # The second is raised by middleware to be tried again, and was given up on.
            return error_map.make_unreachable_error(error)
        case anthropic.CredentialsError():
            return error_map.make_sign_in_error(error)
        case anthropic.APIError():
            return error_map.make_broken_error(error)
        case _:
            return error_map.make_unsent_error(error)
