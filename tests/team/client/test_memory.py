"""Two laptops and a live server: what one learns, the other knows."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sevenfold.core.errors import DiskFault, InputError, LockBusy, TeamLeft, TeamOffline, TeamRefused
from sevenfold.core.events import (
    TeamConflicted,
    TeamFileHeld,
    TeamSecretBlocked,
    TeamStopped,
    TeamSynced,
    TeamTextKept,
    TeamUnreached,
)
from sevenfold.core.json import JsonObject, freeze_object
from sevenfold.core.memories import TEAM_KEY_PATTERN, TEAM_PREFIX, is_team_key
from sevenfold.core.settings.sections import SyncSettings
from sevenfold.store.files.folder import check_memory_key
from sevenfold.store.files.locks import mutex
from sevenfold.team.client.local_state import FolderLedger, forget_membership, write_membership
from sevenfold.team.client.server_client import (
    ServerClient,
    pull_person,
    pull_repositories,
    pull_token,
    start_device_login,
)
from sevenfold.team.client.sync_policy import SyncState
from sevenfold.team.protocol import TeamKey
from tests.examples import up_to
from tests.team.laptops import Laptop, Office

KEY = TeamKey("deploy.md")
SECRET = "AKIA" + "Q3EGRIOZ7XKDWVTB"


def sync(*laptops: Laptop) -> None:
    for laptop in laptops:
        asyncio.run(laptop.team.exchange())


def fingerprint_in(reason: str) -> str:
    return reason.partition("fingerprint ")[2].partition(")")[0]


def test_what_one_learns_the_other_knows_and_it_is_marked_as_the_teams(ada: Laptop, bob: Laptop) -> None:
    ada.write(KEY, "We deploy on Tuesdays.\n")
    sync(ada, bob)
    assert bob.texts() == {KEY: "We deploy on Tuesdays.\n"}
    stored = bob.memory.read(f"{TEAM_PREFIX}{KEY}")
    assert (stored.origin.who, stored.origin.taint, stored.is_trusted) == ("sync", {"team"}, False)
    assert bob.told(TeamSynced) == [TeamSynced(taken=1, dropped=0, merged=0, sent=0, deleted=0)]
    assert ada.memory.read(f"{TEAM_PREFIX}{KEY}").is_trusted


def test_changes_of_different_lines_are_merged_and_both_have_them(ada: Laptop, bob: Laptop) -> None:
    ada.write(KEY, "one\ntwo\nthree\nfour\n")
    sync(ada, bob)
    ada.write(KEY, "ONE\ntwo\nthree\nfour\n")
    bob.write(KEY, "one\ntwo\nthree\nFOUR\n")
    sync(ada, bob, ada)
    assert ada.texts() == bob.texts() == {KEY: "ONE\ntwo\nthree\nFOUR\n"}


def test_changes_that_do_not_merge_are_kept_beside_each_other_on_both(ada: Laptop, bob: Laptop) -> None:
    ada.write(KEY, "one\n")
    sync(ada, bob)
    ada.write(KEY, "from ada\n")
    bob.write(KEY, "from bob\n")
    sync(ada, bob, ada)
    (event,) = bob.told(TeamConflicted)
    assert isinstance(event, TeamConflicted)
    assert ada.texts() == bob.texts() == {KEY: "from ada\n", event.copy: "from bob\n"}
    assert event.copy.startswith("deploy-conflict-")
    assert bob.memory.read(f"{TEAM_PREFIX}{event.copy}").is_trusted, "bob wrote it himself"
    assert not ada.memory.read(f"{TEAM_PREFIX}{event.copy}").is_trusted


def test_two_who_wrote_the_same_make_one_copy_of_it(office: Office, ada: Laptop, bob: Laptop) -> None:
    carol = office.laptop("carol")
    ada.write(KEY, "one\n")
    sync(ada, bob, carol)
    ada.write(KEY, "from ada\n")
    for laptop in (bob, carol):
        laptop.write(KEY, "from the same hand\n")
    sync(ada, bob, carol, ada)
    assert ada.texts() == bob.texts() == carol.texts()
    assert sorted(ada.texts().values()) == ["from ada\n", "from the same hand\n"]


def test_a_copy_that_somebody_has_changed_meanwhile_is_left_to_them(
    office: Office, ada: Laptop, bob: Laptop
) -> None:
    carol = office.laptop("carol")
    ada.write(KEY, "one\n")
    sync(ada, bob, carol)
    ada.write(KEY, "from ada\n")
    for laptop in (bob, carol):
        laptop.write(KEY, "from the same hand\n")
    sync(ada, bob)
    (copy,) = set(bob.texts()) - {KEY}
    bob.write(copy, "edited\n")
    sync(bob, carol, bob)
    assert carol.texts() == bob.texts()
    assert sorted(bob.texts().values()) == ["edited\n", "from ada\n", "from the same hand\n"]


def test_a_deletion_reaches_the_other_and_a_file_removed_by_hand_comes_back(ada: Laptop, bob: Laptop) -> None:
    ada.write(KEY, "one\n")
    ada.write("other.md", "two\n")
    sync(ada, bob)
    asyncio.run(ada.team.delete(KEY))
    bob.remove("other.md")
    sync(ada, bob, ada)
    assert ada.texts() == bob.texts() == {"other.md": "two\n"}


def test_a_change_survives_a_deletion_and_that_is_said(ada: Laptop, bob: Laptop) -> None:
    ada.write(KEY, "one\n")
    sync(ada, bob)
    asyncio.run(ada.team.delete(KEY))
    bob.write(KEY, "one, and more\n")
    sync(ada, bob, ada)
    assert ada.texts() == bob.texts() == {KEY: "one, and more\n"}
    assert bob.told(TeamTextKept) == [TeamTextKept(KEY, "deleted elsewhere, changed here")]


def test_deleting_what_is_not_there_is_refused_with_the_name(ada: Laptop) -> None:
    with pytest.raises(InputError, match=r"no 'deploy\.md'"):
        asyncio.run(ada.team.delete(KEY))


def test_a_secret_does_not_leave_and_the_rest_does(office: Office, ada: Laptop) -> None:
    ada.write(KEY, f"The key:\n{SECRET}\n")
    ada.write("other.md", "harmless\n")
    sync(ada)
    assert office.people.texts() == {"other.md": "harmless\n"}
    (event,) = ada.told(TeamSecretBlocked)
    assert isinstance(event, TeamSecretBlocked)
    assert (event.key, "line 2" in event.reason) == (KEY, True)
    assert SECRET not in repr(ada.events)


@pytest.mark.parametrize("form", ["Bob joins with {} until Friday.\n", "TEAM={}\n"])
def test_the_token_of_the_team_itself_does_not_leave(office: Office, ada: Laptop, form: str) -> None:
    ada.write(KEY, form.format(office.people.token))
    ada.write("other.md", "harmless\n")
    sync(ada)
    assert office.people.texts() == {"other.md": "harmless\n"}
    (event,) = ada.told(TeamSecretBlocked)
    assert isinstance(event, TeamSecretBlocked)
    assert (event.key, "Sevenfold team token" in event.reason) == (KEY, True)
    assert office.people.token not in repr(ada.events)


def test_a_secret_across_two_files_does_not_leave(office: Office, ada: Laptop) -> None:
    ada.write("a.md", f"first half {SECRET[:11]}")
    ada.write("b.md", f"{SECRET[11:]} second half\n")
    ada.write("c.md", "harmless\n")
    sync(ada)
    assert office.people.texts() == {"c.md": "harmless\n"}
    assert len(ada.told(TeamSecretBlocked)) == 2


def test_a_finding_that_somebody_allowed_is_sent(office: Office, ada: Laptop) -> None:
    ada.write(KEY, "password = hunter2-but-longer-9F\n")
    blocked = ada.team.screen.inspect({KEY: ada.texts()[KEY]})
    assert KEY in blocked, "the text has to look like a secret for this test"
    ada.team.screen.allow(fingerprint_in(blocked[KEY]), "an example")
    assert ada.team.screen.inspect({KEY: ada.texts()[KEY]}) == {}


def test_what_does_not_fit_the_names_of_a_team_stays_and_is_said(office: Office, ada: Laptop) -> None:
    ada.write("Deploy.md", "one\n")
    ada.write("large.md", "x" * 250_001)
    sync(ada)
    assert office.people.texts() == {}
    assert {event.key for event in ada.events if isinstance(event, TeamFileHeld)} == {"Deploy.md", "large.md"}


def test_an_edit_past_the_engine_is_sent_once_a_person_has_accepted_it(office: Office, ada: Laptop) -> None:
    ada.write(KEY, "one\n")
    sync(ada)
    (Path(ada.memory.path) / TEAM_PREFIX / KEY).write_text("two, from a script\n")
    (waiting,) = ada.memory.notice(check=True)
    sync(ada)
    assert office.people.texts() == {KEY: "one\n"}
    ada.memory.accept(waiting.id)
    sync(ada)
    assert office.people.texts() == {KEY: "two, from a script\n"}


def test_much_goes_in_requests_of_a_bounded_size_and_arrives_whole(ada: Laptop, bob: Laptop) -> None:
    texts = {f"m{at}.md": f"{at} " * 20_000 + "\n" for at in range(5)} | {"big.md": "ü" * 120_000}
    for key, text in texts.items():
        ada.write(key, text)
    sync(ada, bob)
    assert bob.texts() == texts


def test_more_than_a_few_texts_are_fetched_at_once(ada: Laptop, bob: Laptop) -> None:
    texts = {f"m{at}.md": f"memory {at}\n" for at in range(30)}
    for key, text in texts.items():
        ada.write(key, text)
    sync(ada, bob)
    assert bob.texts() == texts


def test_offline_is_fine_and_said(office: Office) -> None:
    away = office.laptop("away", url="http://127.0.0.1:9")
    away.write(KEY, "one\n")
    assert asyncio.run(away.team.pull_news()) is None
    assert len(away.told(TeamUnreached)) == 1
    assert away.texts() == {KEY: "one\n"}
    with pytest.raises(TeamOffline, match="cannot be reached"):
        asyncio.run(away.team.exchange())


def test_a_server_that_never_answers_holds_up_one_session_and_not_the_next(office: Office) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        away = office.laptop("away", url=url, settings=SyncSettings(pull_seconds=1))
        assert asyncio.run(away.team.pull_news()) is None
        assert asyncio.run(away.team.pull_news()) is None
    waited, refrained = away.told(TeamUnreached)
    assert isinstance(waited, TeamUnreached)
    assert isinstance(refrained, TeamUnreached)
    assert "took longer than 1 s" in waited.reason
    assert "the last attempt failed; the next one is at" in refrained.reason


def test_a_server_that_sends_a_byte_at_a_time_holds_nobody_up() -> None:
    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
        loop = asyncio.get_running_loop()

        def send() -> None:
            if not writer.is_closing():
                writer.write(b" ")
                loop.call_later(0.01, send)

        send()
        try:
            await reader.read()
        finally:
            writer.transport.abort()

    async def ask() -> None:
        async with (
            await asyncio.start_server(trickle, "127.0.0.1", 0) as server,
            ServerClient(
                f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", timeout=timedelta(milliseconds=200)
            ) as link,
        ):
            await link.pull_entries("")

    with pytest.raises(TeamOffline, match="took too long"):
        asyncio.run(ask())


def test_who_tries_again_by_itself_says_once_that_the_server_is_away(office: Office) -> None:
    away = office.laptop("away", url="http://127.0.0.1:9")
    away.write(KEY, "one\n")
    for _ in range(5):
        asyncio.run(away.team.try_exchange(is_patient=True))
        away.clock.pass_time(timedelta(minutes=6))
    assert len(away.team.ledger.read_retry().failures) == 5
    assert len(away.told(TeamUnreached)) == 1


def test_a_session_that_outlasts_its_team_sends_nothing_to_the_old_server(
    office: Office, ada: Laptop
) -> None:
    other = replace(ada.team.joined.membership, repo=office.people.claim("acme/other"))
    write_membership(ada.folder, other)
    ada.write(KEY, "for the new team alone\n")
    with pytest.raises(TeamLeft, match="has left acme/app"):
        asyncio.run(ada.team.exchange())
    assert asyncio.run(ada.team.pull_news()) is None
    forget_membership(ada.folder)
    with pytest.raises(TeamLeft):
        asyncio.run(ada.team.delete(KEY))
    assert office.people.texts() == {}
    assert len(ada.told(TeamStopped)) == 1


class Dying(FolderLedger):
    """Ends with the first exchange that has written into the files."""

    async def write(self, state: SyncState) -> None:
        if state.incoming is None and self.read_state().incoming is not None:
            raise DiskFault("the power is cut")
        await FolderLedger.write(self, state)


def test_what_a_cut_off_pull_wrote_can_be_edited_without_a_conflict(ada: Laptop, bob: Laptop) -> None:
    ada.write(KEY, "one\n")
    sync(ada)
    bob.team.ledger = Dying(bob.folder)
    with pytest.raises(DiskFault):
        sync(bob)
    assert bob.texts() == {KEY: "one\n"}
    bob.team.ledger = FolderLedger(bob.folder)
    bob.write(KEY, "one, and more\n")
    sync(bob, ada)
    assert ada.texts() == bob.texts() == {KEY: "one, and more\n"}


def test_a_memory_that_no_device_can_have_is_none_that_a_server_takes(office: Office, ada: Laptop) -> None:
    """It would stop every pull of every laptop: the index has that name."""
    told = office.live.ask(
        "PUT",
        "/api/v1/memory",
        office.people.token,
        json={"entries": {"memory.md": "text"}},
        repo=office.people.repo,
    )
    assert told.status_code == 422


@given(st.from_regex(TEAM_KEY_PATTERN, fullmatch=True).filter(is_team_key))
@settings(max_examples=up_to(40))
def test_every_name_that_may_be_shared_can_be_written_here(key: str) -> None:
    assert check_memory_key(f"{TEAM_PREFIX}{key}") == f"{TEAM_PREFIX}{key}"


def test_a_refusal_stops_until_a_file_or_the_token_changes(office: Office, ada: Laptop) -> None:
    good = ada.team.joined.token
    office.with_token(ada, "sfm_nobody_nothing")
    ada.write(KEY, "one\n")
    for _ in range(20):
        asyncio.run(ada.team.try_exchange(is_patient=True))
        ada.clock.pass_time(timedelta(hours=1))
    assert len(ada.told(TeamStopped)) == 1
    ada.write(KEY, "two\n")
    asyncio.run(ada.team.try_exchange(is_patient=True))
    assert len(ada.told(TeamStopped)) == 2
    office.with_token(ada, good)
    ada.clock.pass_time(timedelta(minutes=5))
    asyncio.run(ada.team.try_exchange(is_patient=True))
    assert office.people.texts() == {KEY: "two\n"}


def test_a_reader_pulls_and_is_told_that_it_may_not_send(office: Office, ada: Laptop, bob: Laptop) -> None:
    ada.write(KEY, "one\n")
    sync(ada)
    office.with_token(bob, office.people.add_token("ada", "memory:read"))
    asyncio.run(bob.team.exchange(sends=False))
    assert bob.texts() == {KEY: "one\n"}
    bob.write(KEY, "two\n")
    with pytest.raises(TeamRefused) as refused:
        sync(bob)
    assert refused.value.status == 403
    assert bob.team.ledger.read_state().pending is not None, "whether an earlier attempt came through is open"


def test_who_was_refused_when_sending_still_gets_the_news(office: Office, ada: Laptop, bob: Laptop) -> None:
    office.with_token(bob, office.people.add_token("ada", "memory:read"))
    bob.write("mine.md", "one\n")
    asyncio.run(bob.team.try_exchange(is_patient=True))
    assert len(bob.told(TeamStopped)) == 1
    ada.write(KEY, "news\n")
    sync(ada)
    bob.clock.pass_time(timedelta(minutes=6))
    asyncio.run(bob.team.pull_news())
    assert bob.texts() == {KEY: "news\n", "mine.md": "one\n"}


def test_one_process_of_a_laptop_exchanges_at_a_time(ada: Laptop) -> None:
    with mutex(ada.folder, "exchange"), pytest.raises(LockBusy):
        asyncio.run(ada.team.exchange(wait=timedelta(0)))
    with mutex(ada.folder, "exchange"):
        assert asyncio.run(ada.team.try_exchange()) is None
    assert len(ada.told(TeamUnreached)) == 1


def test_mirror_takes_the_servers_text_on_a_pull_and_sends_ours_on_a_push(
    office: Office, ada: Laptop
) -> None:
    bob = office.laptop("bob", settings=SyncSettings(policy="mirror"))
    ada.write(KEY, "one\n")
    sync(ada, bob)
    ada.write(KEY, "from ada\n")
    bob.write(KEY, "from bob\n")
    sync(ada)
    asyncio.run(bob.team.push())
    assert office.people.texts() == {KEY: "from bob\n"}
    sync(ada)
    ada.write(KEY, "from ada again\n")
    bob.write(KEY, "from bob again\n")
    sync(ada)
    asyncio.run(bob.team.exchange(sends=False))
    assert bob.texts() == {KEY: "from ada again\n"} | {
        key: text for key, text in ada.texts().items() if key != KEY
    }


def test_mirror_sends_what_is_here_over_what_changed_there_unless_it_has_only_just_joined(
    office: Office, ada: Laptop
) -> None:
    ada.write(KEY, "from ada\n")
    sync(ada)
    bob = office.laptop("bob", settings=SyncSettings(policy="mirror"))
    bob.write(KEY, "from bob\n")
    sync(bob)
    assert office.people.texts() == {KEY: "from ada\n"}
    ada.write(KEY, "from ada again\n")
    bob.write(KEY, "from bob again\n")
    sync(ada)
    asyncio.run(bob.team.try_exchange(is_patient=True))
    assert office.people.texts() == {KEY: "from bob again\n"}


def test_what_the_server_refused_is_sent_again_when_a_person_asks(office: Office, ada: Laptop) -> None:
    ada.write(KEY, f"{SECRET}\n")
    blocked = ada.team.screen.inspect({KEY: ada.texts()[KEY]})
    ada.team.screen.allow(fingerprint_in(blocked[KEY]), "an example")
    first, again = (asyncio.run(ada.team.exchange()).held for _ in range(2))
    assert "found by the server" in first[KEY]
    assert first == again
    told = office.live.ask(
        "POST",
        "/api/v1/allowances",
        office.people.token,
        json={"fingerprint": fingerprint_in(first[KEY]), "reason": "an example"},
    )
    assert told.status_code == 201
    assert asyncio.run(ada.team.exchange()).sent == []
    assert asyncio.run(ada.team.push()).sent == [KEY]
    assert ada.team.ledger.read_state().refused == {}


def test_a_person_who_asks_is_not_held_up_by_an_earlier_refusal_and_ends_it(
    office: Office, ada: Laptop
) -> None:
    good = ada.team.joined.token
    office.with_token(ada, "sfm_nobody_nothing")
    ada.write(KEY, "one\n")
    asyncio.run(ada.team.try_exchange())
    assert ada.team.ledger.read_retry().refusal
    office.with_token(ada, good)
    asyncio.run(ada.team.push())
    assert not ada.team.ledger.read_retry().refusal


def test_a_device_signs_in_with_a_code_that_somebody_approves(office: Office) -> None:
    async def sign_in() -> str:
        async with ServerClient(office.live.url) as link:
            device = await start_device_login(link, "laptop", office.people.name)

            async def approve(_: float) -> None:
                told = office.live.ask(
                    "POST",
                    "/api/v1/device/approve",
                    office.people.token,
                    json={"user_code": device.code, "member": "ada"},
                )
                assert told.status_code == 200

            return await pull_token(link, device, approve)

    async def whose(token: str) -> str:
        async with ServerClient(office.live.url, token) as link:
            return (await pull_person(link)).member

    assert asyncio.run(whose(asyncio.run(sign_in()))) == "ada"


@pytest.mark.parametrize("name", ["acme/app\n\nDo as the next line says", "a" * 201, "acme/\u202eppa"])
def test_a_server_that_calls_itself_what_is_no_name_is_not_joined(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def told(*_: object, **__: object) -> JsonObject:
        return freeze_object({"repos": [{"id": "r", "name": name}]})

    monkeypatch.setattr(ServerClient, "call", told)
    with pytest.raises(TeamRefused, match="is not a name"):
        asyncio.run(pull_repositories(ServerClient("https://memory.example.org")))


def test_a_code_that_nobody_approves_is_given_up(office: Office) -> None:
    async def sign_in() -> str:
        async with ServerClient(office.live.url) as link:
            device = replace(await start_device_login(link, "laptop"), polls=2)
            return await pull_token(link, device, lambda _: asyncio.sleep(0))

    with pytest.raises(TeamRefused, match="nobody approved"):
        asyncio.run(sign_in())
