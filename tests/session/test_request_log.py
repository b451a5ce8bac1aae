"""A request is on the disk before it is sent, and without a bill until one comes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sevenfold.core.errors import Overloaded, ProviderError, ReplyBroken
from sevenfold.core.messages import Message
from sevenfold.core.requests import ModelRequest, ModelResponse
from sevenfold.layers.forks.policy import ForkBrief
from sevenfold.providers.provider import OnDelta, Provider, ProviderWrapper
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.session.session import Session
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import RecordBody, SentRecord, UsageRecord
from tests.session.talk import FRAME, reply


def stored(home: Path, session: str) -> list[RecordBody]:
    """Requests and bills on the disk now."""
    [sessions] = (home / ".sevenfold" / "projects").glob("*/sessions")
    with Folder.open(sessions) as folder:
        lines = [line for line in scan_transcript(folder, session) if isinstance(line, StoredRecord)]
    return [line.record.body for line in lines if isinstance(line.record.body, SentRecord | UsageRecord)]


async def opened(home: Path, provider: Provider | None = None) -> Session:
    (home / "project").mkdir(exist_ok=True)
    session = await Session.open(
        FRAME, project=home / "project", environ={"HOME": str(home)}, provider=provider
    )
    session.history.append(Message("user", "Hello?"))
    return session


class Looking(ProviderWrapper):
    """Looks at the disk while a request is under way."""

    def __init__(self, inner: Provider, home: Path) -> None:
        super().__init__(inner)
        self.home, self.session, self.seen = home, "", list[RecordBody]()

    async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        self.seen += stored(self.home, self.session)
        return await super().send(request, on_delta)


def test_a_request_is_on_the_disk_before_its_view_is_handed_out(tmp_path: Path) -> None:
    async def tell() -> None:
        async with await opened(tmp_path) as session:
            await session.prepare()
            assert stored(tmp_path, session.id) == [SentRecord(FRAME.model, "main")]
            assert session.unbilled_requests == 1
            await session.record(reply(Message("assistant", "Hi."), 1))
            assert session.unbilled_requests == 0
            assert isinstance(stored(tmp_path, session.id)[-1], UsageRecord)

    asyncio.run(tell())


def test_a_request_of_a_fork_is_on_the_disk_before_it_is_sent(tmp_path: Path) -> None:
    async def tell() -> None:
        looking = Looking(ScriptedProvider([make_response("Noted.")]), tmp_path)
        async with await opened(tmp_path, looking) as session:
            looking.session = session.id
            await session.prepare()
            await session.run_fork(ForkBrief(kind="notes", directive="Note it."))
            assert looking.seen == [SentRecord(FRAME.model, "main"), SentRecord(FRAME.model, "notes")]
            assert session.unbilled_requests == 1

    asyncio.run(tell())


@pytest.mark.parametrize(("error", "unbilled"), [(Overloaded("busy"), 0), (ReplyBroken("half"), 1)])
def test_a_refusal_is_no_lost_bill_and_a_broken_answer_is_one(
    tmp_path: Path, error: ProviderError, unbilled: int
) -> None:
    async def tell() -> None:
        async with await opened(tmp_path) as session:
            await session.prepare()
            session.note_failure(error)
            session.note_failure(error)
            assert session.unbilled_requests == unbilled
            await session.turn_ended()
            refused = [
                body for body in stored(tmp_path, session.id) if body == SentRecord(FRAME.model, "main", True)
            ]
            assert len(refused) == 1 - unbilled

    asyncio.run(tell())


def test_a_request_that_is_sent_again_after_a_refusal_is_on_the_disk_too(tmp_path: Path) -> None:
    async def tell() -> None:
        async with await opened(tmp_path) as session:
            view = await session.prepare()
            session.note_failure(Overloaded("busy"))
            assert await session.prepare() is view
            assert session.unbilled_requests == 1
            assert stored(tmp_path, session.id)[-1] == SentRecord(FRAME.model, "main")
            assert await session.prepare() is view
            assert session.unbilled_requests == 1
            await session.record(reply(Message("assistant", "Hi."), 1))
            assert session.unbilled_requests == 0

    asyncio.run(tell())
