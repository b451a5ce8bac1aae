"""The program that agents run as a hook: hands the event to the resident process and prints its answer.

It is run by its path, `python -I -S hook_script.py EVENT`, without the package and without site-packages:
importing them takes longer than everything else here. Whatever goes wrong, it prints nothing and ends with 0,
and the reason is in the log. What is not answered in time is left for the process to read.
"""

from __future__ import annotations

import os
import sys
import time
from _json import encode_basestring_ascii

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from sevenfold.resident import client
elif __name__ == "__main__":
    # Last, so that no module of this folder stands in for one of the standard library.
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    client = __import__("client")
else:
    from sevenfold.resident import client

DEADLINE_SECONDS = 0.2
"""For an answer, of the quarter of a second that a hook may take: the interpreter has to start as well."""

_LEFT_LATER = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd")
"""Events that are worth an answer after the fact."""

_TOLD_AGAIN = ("Stop", "SessionEnd")
"""Events that may be told twice: where nobody answered, the process may have died with what it was told."""


def run_hook(event: str, given: bytes, environ: Mapping[str, str], *, seconds: float) -> bytes:
    """What the hook prints; empty where nothing is to be said, or nobody could be asked in time."""
    deadline = time.monotonic() + seconds
    if not given:
        client.log_failure(
            environ, f"hook {event}: no input, or over {client.MAX_MESSAGE_BYTES:,} bytes of it"
        )
        return b""
    try:
        delivery = client.Delivery()
        message = render_hook_message(event, given.decode("utf-8", "replace"), environ, deadline)
        try:
            reply = client.exchange(message, environ, deadline=deadline, starts=True, delivery=delivery)
        except Exception as error:
            if event in (_TOLD_AGAIN if delivery.is_done else _LEFT_LATER):
                client.leave_message(message, environ)
            client.log_failure(environ, f"hook {event}: {error}")
            return b""
        if reply[:1] == client.STATUS_OK:
            return reply[1:]
        client.log_failure(environ, f"hook {event}: {reply[1:].decode('utf-8', 'replace')}")
    except Exception as error:  # an agent must not notice that its memory is away
        client.log_failure(environ, f"hook {event}: {type(error).__name__}: {error}")
    return b""


def render_hook_message(event: str, given: str, environ: Mapping[str, str], deadline: float) -> bytes:
    """The request as JSON, put together by hand: the library for it takes as long to load as all the rest.

    The deadline goes with it: an answer after it is kept for the next hook of the session.
    """
    quote = encode_basestring_ascii
    known = client.select_environ(environ)
    variables = ",".join(f"{quote(name)}:{quote(value)}" for name, value in known.items())
    arguments = f'{{"event":{quote(event)},"input":{quote(given)},"deadline_ms":{int(deadline * 1000)}}}'
    text = (
        f'{{"protocol":{client.PROTOCOL},"version":{quote(client.read_version())},"operation":"hook",'
        f'"plain":true,"arguments":{arguments},"environ":{{{variables}}}}}'
    )
    return text.encode("ascii", "replace")


def read_input(descriptor: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := os.read(descriptor, 1 << 20):
        size += len(part)
        if size <= client.MAX_MESSAGE_BYTES:
            parts.append(part)
    return b"".join(parts) if size <= client.MAX_MESSAGE_BYTES else b""


if __name__ == "__main__":
    answer = run_hook(sys.argv[1], read_input(0), os.environ, seconds=DEADLINE_SECONDS)
    try:
        while answer:
            answer = answer[os.write(1, answer) :]
    except OSError:
        pass  # the agent does not wait for it any more
    os._exit(0)
