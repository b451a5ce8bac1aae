"""What doctor says of keys and what a chat says of them is the same."""

from __future__ import annotations

from sevenfold.agent.loop.choose_provider import API_KEY_VARIABLES, PROVIDER_VARIABLES, URL_VARIABLES
from sevenfold.cli.inspect.doctor import check_api_keys


def test_doctor_looks_for_what_a_chat_looks_for() -> None:
    assert sorted((*API_KEY_VARIABLES, *URL_VARIABLES)) == sorted(PROVIDER_VARIABLES)
    for name in PROVIDER_VARIABLES:
        assert [finding.level for finding in check_api_keys({name: "x"})] == ["fine"]
