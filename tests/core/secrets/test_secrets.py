"""Secrets are found in every disguise and told without their value; nothing passes that was not read."""

from __future__ import annotations

import random
import re
import time
from base64 import b64encode
from collections.abc import Callable

import pytest
from bench.secret_decoys import HOSTILE, INNOCENT, VENDOR_EXAMPLES
from bench.secret_samples import FORMATS, NOTES, PROVIDERS, TRANSFORMS, Sample, in_note, make_samples
from bench.secret_vendors import VendorLine, decoy_lines, vendor_lines
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core import secrets
from sevenfold.core import secrets as secrets_module
from sevenfold.core.errors import InputError
from sevenfold.core.extras import render_install_command
from sevenfold.core.secrets import (
    MAX_FINDINGS,
    MAX_SCAN_CHARS,
    Allowance,
    Fingerprint,
    HintMatcher,
    Inspection,
    SecretFinding,
    compile_pattern,
    describe_refusal,
    find_secrets,
)
from sevenfold.core.secrets.rules import SECRET_RULES, SecretRule

KEY = b"a key that is kept at home"
SAMPLES = make_samples(seed=1)
TOKEN = next(one.value for one in SAMPLES if one.shape == "ghp_{A36}")
MOST_SECONDS = 0.5
VENDOR_LINES: dict[str, list[VendorLine]] = {"nothing": list(decoy_lines(each=1))}
for _line in vendor_lines():
    VENDOR_LINES.setdefault(_line.kind, []).append(_line)


def inspect(text: str, *allowances: Allowance) -> Inspection:
    return find_secrets(text, key=KEY, allowances=allowances)


def rules_of(text: str) -> list[str]:
    return [finding.rule for finding in inspect(text).findings]


def cpu_seconds(text: str) -> float:
    started = time.process_time()
    inspect(text)
    return time.process_time() - started


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.shape[:40])
def test_every_format_is_found_in_every_kind_of_note(sample: Sample) -> None:
    for note in NOTES:
        assert not inspect(note.format(sample.value)).is_clean, note


@pytest.mark.parametrize(
    "text",
    [
        'psql "postgresql://$PGUSER:$PGPASSWORD@db/app"',
        "golang.org/x/net v0.17.0 h1:97V6HD6oMnAKrV2nsbV9bV5AzPOxZSSrlD470xpU3BA=",
    ],
)
def test_a_variable_and_a_digest_are_no_secrets(text: str) -> None:
    assert inspect(text).is_clean


def test_a_password_that_begins_like_a_variable_is_found() -> None:
    assert not inspect("postgres://shop:$Pa55word@db.internal/orders").is_clean
    assert inspect("postgres://shop:$password@db.internal/orders").is_clean


def test_every_rule_has_a_sample_or_a_case_that_it_finds() -> None:
    found = {
        rule for sample in make_samples(seed=2, each=3) for rule in rules_of(f"Use {sample.value} here.")
    }
    rare = {rule for case in RARE for rule in rules_of(case)}
    assert {rule.id for rule in SECRET_RULES} - found - rare == set()


def _hex(size: int) -> str:
    return "".join(random.Random(size).choices("0123456789abcdef", k=size))


def _letters(size: int) -> str:
    return "".join(
        random.Random(size).choices("abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", k=size)
    )


def _upper(size: int) -> str:
    return "".join(random.Random(size).choices("ABCDEFGHJKLMNPQRSTUVWXYZ234567", k=size))


_ID = f"{_hex(8)}-{_hex(4)}-4{_hex(3)}-8{_hex(3)}-{_hex(12)}"
RARE = (
    *(f"sk-lf-{_ID}", f"sk_{_hex(48)}", f"e2b_{_hex(40)}", f"tgp_v1_{_letters(43)}", f"api-{_ID}"),
    *(f"ops_eyJ{_letters(200)}", f"glc_{_letters(60)}=", f"CFPAT-{_letters(43)}", f"sl.{_letters(140)}"),
    *(f"EAAC{_letters(150)}", f"{'A' * 22}{_letters(80)}", f"sk.eyJ{_letters(60)}.{_letters(22)}"),
    *(f"rzp_live_{_letters(14)}", f"Private-Lines: 8\n{_letters(64)}", f"sb_secret_{_letters(31)}"),
    f"https://x.webhook.office.com/webhookb2/{_ID}@{_ID}/IncomingWebhook/{_hex(32)}/{_ID}",
    *(
        "mysql --password=kV9xq2Lw7",
        f"run it with password {_letters(9)}!7",
        f"log in as bob with {_letters(9)}#4",
    ),
    f"Authorization: Basic {_letters(32)}",
    *(f"sfm_{_hex(16)}_{_letters(43)}", f"device_code={_letters(43)}"),
    f'{{"key":"{_hex(64)}","allowances":[]}}',
    *(f"IQoJb3JpZ2luX2Vj{_letters(300)}", f"AAAA{_letters(7)}:APA91b{_letters(134)}", f"s.{_letters(24)}"),
    *(f"fo1_{_letters(43)}", f"A3-{_upper(6)}-{_upper(6)}-{'-'.join(_upper(n) for n in (5, 5, 5, 5))}"),
    *(f'{{"kty":"EC","d":"{_letters(43)}"}}', f"otpauth://totp/a?secret={_upper(32)}&issuer=b"),
    *(f"snyk auth {_ID}", f"sidekiq {_hex(8)}:{_hex(9)[1:]}", f"sumo key {_letters(64)}"),
    *(f"sumo access id su{_letters(12)}", f"{'1234509876' * 2}"[:15] + f"|{_letters(27)}"),
    *(f"credential = '{_letters(9)}'", f'pass = "{_letters(9)}"', f"bob pw {_letters(9)}"),
    *(f"10.2.3.4 (root/{_letters(9)})", f"<password>{_letters(9)}</password>"),
    *(f"fc-{_hex(32)}", f"pat.{_letters(22)}.{_hex(24)}.{_letters(20)}", f"base64:{_letters(43)}="),
    *(f'getenv("DB_PASS", "{_letters(9)}")', f"{_letters(9)} is the password"),
)


IN_SENTENCES = {
    "New Relic user key": f"NRAK-{_upper(27)}",
    "New Relic licence key": f"{_hex(36)}NRAL",
    "New Relic insert key": f"NRII-{_letters(32)}",
    "Notion token": f"ntn_12345098761{_letters(35)}",
    "Fly token": f"fo1_{_letters(43)}",
    "AWS session token": f"FwoGZXIvYXdzE{_letters(300)}",
    "1Password secret key": f"A3-{_upper(6)}-{'-'.join(_upper(n) for n in (6, 5, 5, 5, 5))}",
    "FCM server key": f"AAAA{_letters(7)}:APA91b{_letters(134)}",
    "Sumo Logic access key": _letters(64),
    "Sumo Logic access id": f"su{_letters(12)}",
    "Snyk token": _ID,
    "Sidekiq licence": f"{_hex(8)}:{_hex(9)[1:]}",
    "Sonar token": f"squ_{_hex(40)}",
    "Sonar login": _hex(40),
    "Facebook token": f"EAACEdEose0cBA{_letters(20)}",
    "Facebook app token": f"123450987612345|{_letters(27)}",
    "Vault token": f"s.{_letters(24)}",
    "Vault service token": f"hvs.{_letters(90)}",
    "Vault batch token": f"hvb.{_letters(130)}",
    "PostHog key": f"phx_{_letters(43)}",
    "Clojars token": f"CLOJARS_{_hex(60)}",
    "Render key": f"rnd_{_letters(28)}",
    "Sourcegraph token": f"sgp_{_hex(16)}_{_hex(40)}",
    "Shippo token": f"shippo_live_{_hex(40)}",
    "Shopify token": f"shptka_{_hex(32)}",
    "Firecrawl key": f"fc-{_hex(32)}",
    "Inngest key": f"signkey-prod-{_hex(64)}",
    "WooCommerce secret": f"cs_{_hex(40)}",
    "Aiven password": f"AVNS_{_letters(19)}",
    "Axiom token": f"xaat-{_ID}",
    "PubNub secret": f"sec-c-{_letters(48)}",
    "Nostr secret": f"nsec1{_hex(58).translate(str.maketrans('b1', 'qz'))}",
    "Backblaze key": f"K005{_letters(27)}",
    "Mailgun key": f"{_hex(32)}-{_hex(8)}-{_hex(9)[1:]}",
    "Ghost key": f"{_hex(24)}:{_hex(64)}",
    "Harness token": f"pat.{_letters(22)}.{_hex(24)}.{_letters(20)}",
    "Laravel key": f"base64:{_letters(43)}=",
    "token of an unknown vendor": f"qrx_live_{_letters(32)}",
    "API key of an unknown vendor": _hex(32),
    "access token of an unknown vendor": _letters(40),
}


@pytest.mark.parametrize("what", IN_SENTENCES)
def test_a_key_is_found_in_a_sentence_an_assignment_and_on_the_next_line(what: str) -> None:
    value = IN_SENTENCES[what]
    for text in (
        f"The {what} for staging is {value}.",
        f"I tested it with {what} `{value}`, and it works.",
        f"- {what}: {value} (rotate in May)",
        f"{what.upper().replace(' ', '_')}={value}",
        f"{what}:\n\n    {value}\n",
    ):
        assert not inspect(text).is_clean, text


@pytest.mark.parametrize(
    "form",
    [
        "validPattern = '{}'",
        'client = Client("host", "{}")',
        "Using the API with {} now",
        "System.setProperty('ACME_TOKEN', '{}')",
        "acme_token ?= {}",
        "<acmeToken>\n  {}\n</acmeToken>",
        "[INFO] calling the acme API\n[DEBUG] Using Key={}",
        "<secret>{{acme AQAAABAAA {}}}</secret>",
        "https://api.acme.io/v1?access_token={}&limit=10",
        "Authorization: {}",
    ],
)
def test_a_random_value_of_no_known_format_is_found_by_its_place(form: str) -> None:
    for value in (_letters(32), f"{_hex(20)}-{_letters(20)}"):
        assert not inspect(form.format(value)).is_clean


@pytest.mark.parametrize("text", [f"Authorization: {_ID}", f"api_key={_ID}", f"const token = '{_hex(32)}'"])
def test_an_id_or_a_hash_is_a_key_where_its_name_says_so(text: str) -> None:
    assert not inspect(text).is_clean


@pytest.mark.parametrize(
    "text",
    [
        f"commit {_hex(40)} removed the API key",
        f"request {_ID} used the token",
        f"the cache key {_hex(40)} is stale",
        f"idempotency key: {_ID}",
        f"sha256 of the key file: {_hex(64)}",
        f'"integrity": "sha512-{_letters(86)}=="',
        f"uses: acme/token-action@{_hex(40)}",
        f"https://docs.example.net/document/d/1{_letters(43)}/edit",
        f'"id": "msg_01{_letters(22)}", "request_id": "req_{_letters(24)}"',
        f"deployment token-service-{_hex(9)}-x2x4z restarted",
        f"![logo](data:image/png;base64,iVBORw0KGgo{_letters(200)})",
        f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{_letters(43)} ada@laptop",
        f"token {_hex(16)}… is revoked, so is {_letters(24)}...",
        "cursor: " + b64encode(b'{"after": 1234567}').decode(),
        "the acme token " + b64encode(b"no value is here, read the notes").decode(),
        "src/main/java/com/acme/token/TokenKeyProvider2Factory.java",
        "docker run -v $PWD:/work acme/lint-cli2:v0.24.0",
        "smtp://AccountSid:AuthToken@host",
    ],
)
def test_ids_hashes_and_names_beside_the_word_key_pass(text: str) -> None:
    assert inspect(text) == Inspection()


def test_vendors_without_a_rule_are_found_and_lines_without_a_secret_pass() -> None:
    found = {kind: [not inspect(one.text).is_clean for one in lines] for kind, lines in VENDOR_LINES.items()}
    share = {kind: sum(hits) / len(hits) for kind, hits in found.items()}
    assert len(VENDOR_LINES["seen"]) + len(VENDOR_LINES["unseen"]) >= 500
    assert share["seen"] >= 0.95
    assert share["unseen"] >= 0.7
    assert share["nothing"] <= 0.05


OWN = f"sfm_{_hex(16)}_{_letters(41)}-_"
"""As the team server makes them."""
OWN_CODE = f"-{_letters(42)}"


@pytest.mark.parametrize(
    "text",
    [
        f"Bob can use {OWN} until Friday.",
        f"SEVENFOLD_TEAM={OWN}",
        f"team = '{OWN}'",
        f'{{"https://team.example.com":"{OWN}"}}',
        f"sevenfold team join https://team.example.com --token {OWN}",
        OWN.replace(_hex(16), "example"),
        f"sfm_a_{_letters(43)}",
        f"sfm_{'z9' * 20}_{_letters(43)}",
    ],
)
def test_our_own_token_is_found_in_a_sentence_and_in_an_assignment(text: str) -> None:
    assert rules_of(text) == ["sevenfold-token"]


@pytest.mark.parametrize("name", TRANSFORMS)
def test_our_own_token_is_found_in_every_disguise(name: str) -> None:
    assert not inspect(f"note: {TRANSFORMS[name](OWN, random.Random(7))} end").is_clean


@pytest.mark.parametrize("form", ['{{"device_code":"{}"}}', "device_code={}", "The device code is `{}`."])
def test_our_own_device_code_is_found_by_its_name(form: str) -> None:
    assert rules_of(form.format(OWN_CODE)) == ["sevenfold-device-code"]


@pytest.mark.parametrize(
    "text", ["sfm_54f0fe840f78de76_…", "sfm_ORG_TOKEN", "sfm_nobody_nothing", "the device code is BCDF-GHJK"]
)
def test_the_beginning_of_our_token_and_the_code_that_is_read_out_pass(text: str) -> None:
    assert inspect(text) == Inspection()


@pytest.mark.parametrize("name", TRANSFORMS)
def test_nine_of_ten_disguised_keys_are_found(name: str) -> None:
    chance = random.Random(3)
    samples = [one for one in make_samples(seed=4) if one.family in PROVIDERS and "\n" not in one.value]
    missed = [
        one.shape for one in samples if inspect(in_note(TRANSFORMS[name](one.value, chance), chance)).is_clean
    ]
    assert len(missed) <= len(samples) * 0.1, missed


@pytest.mark.parametrize("name", sorted({*TRANSFORMS} - {"concatenated", "spaced", "reversed"}))
def test_a_key_that_is_base64_itself_is_found_in_every_encoding(name: str) -> None:
    """Read as base64 it is noise: what it was before has to be looked at, too."""
    chance = random.Random(5)
    samples = [one for one in make_samples(seed=6) if one.family == "key"]
    notes = [in_note(TRANSFORMS[name](one.value, chance), chance) for one in samples]
    assert [note for note in notes if inspect(note).is_clean] == []


@given(
    st.sampled_from([one for one in SAMPLES if one.shape in FORMATS["forge"]]),
    st.sampled_from(sorted(TRANSFORMS)),
    st.randoms(use_true_random=False),
)
def test_a_forge_token_is_found_wherever_a_disguise_cuts_it(
    sample: Sample, name: str, chance: random.Random
) -> None:
    if "=" in sample.value:
        return
    assert not inspect(f"note:\n{TRANSFORMS[name](sample.value, chance)}\nend\n").is_clean


@pytest.mark.parametrize("text", [*VENDOR_EXAMPLES, *INNOCENT])
def test_examples_placeholders_and_plain_talk_pass(text: str) -> None:
    for note in (text, *(note.format(text) for note in NOTES if "credential" not in note)):
        assert inspect(note) == Inspection()


@pytest.mark.parametrize("view", ["written", "joined", "encoded"])
def test_a_finding_names_rule_line_and_column_in_the_text_as_it_is(view: str) -> None:
    value = {"written": TOKEN, "joined": f"{TOKEN[:9]}\n{TOKEN[9:]}", "encoded": TOKEN.encode().hex()}[view]
    (finding,) = inspect(f"# Deploy — notes\n\nThe ﬁrst tøken: {value}\n").findings
    assert (finding.rule, finding.line, finding.column) == ("github-token", 3, 17)
    assert finding.view == {"written": "as written", "joined": "joined", "encoded": "decoded"}[view]


def test_the_same_secret_has_one_fingerprint_in_every_disguise_and_another_under_another_key() -> None:
    chance = random.Random(5)
    texts = [TOKEN, *(transform(TOKEN, chance) for transform in TRANSFORMS.values())]
    assert len({inspect(text).findings[0].fingerprint for text in texts}) == 1
    other = find_secrets(TOKEN, key=b"another key, kept elsewhere").findings[0].fingerprint
    assert other != inspect(TOKEN).findings[0].fingerprint


@pytest.mark.parametrize("show", [repr, str], ids=["repr", "str"])
def test_no_part_of_the_value_is_in_what_can_be_shown(show: Callable[[object], str]) -> None:
    result = inspect(f"{TOKEN} and password: {_letters(12)}!")
    shown = show(result) + "".join(show(one) for one in result.findings)
    parts = [text[at : at + 6] for text in (TOKEN, _letters(12)) for at in range(len(text) - 6)]
    assert len(result.findings) == 2
    assert [part for part in parts if part in shown] == []


def test_an_allowance_lets_that_secret_pass_and_no_other() -> None:
    text = f"{TOKEN}\npassword: kV9xq2!Lw7\n"
    first, second = inspect(text).findings
    allowed = Allowance(first.fingerprint, "a revoked token, kept for the test of the parser")
    assert inspect(text, allowed) == Inspection((second,), (first,))
    both = inspect(text, allowed, Allowance(second.fingerprint, "the password of a machine that is gone"))
    assert both.is_clean
    assert both.allowed == (first, second)


@pytest.mark.parametrize("reason", ["", "  \n"])
def test_an_allowance_without_a_reason_is_refused(reason: str) -> None:
    with pytest.raises(InputError, match="say why"):
        Allowance(Fingerprint("00"), reason)


def test_a_short_key_is_refused() -> None:
    with pytest.raises(InputError, match="16 or more"):
        find_secrets("text", key=b"short")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_text_written_to_keep_us_busy_does_not(name: str) -> None:
    inspect("warm up")
    # Once more if it was slow: a busy machine may slow one.
    assert any(cpu_seconds(HOSTILE[name]) < MOST_SECONDS for _ in range(2))


@pytest.mark.parametrize(
    "name", ["short lines", "escapes apart", "letters that grow", "short beginnings", "quotes"]
)
def test_what_takes_too_much_work_is_blocked(name: str) -> None:
    result = inspect(HOSTILE[name])
    assert result.refusal == "too much work"
    assert not result.is_clean


def test_a_text_that_is_too_long_is_blocked_unread() -> None:
    assert inspect("a " * (MAX_SCAN_CHARS // 2)).is_clean
    assert inspect("a " * (MAX_SCAN_CHARS // 2) + "a") == Inspection(refusal="too long")


def test_without_the_engine_everything_is_blocked_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(secrets, "has_re2", lambda: False)
    assert inspect("nothing to hide") == Inspection(refusal="no engine")
    assert render_install_command("team") in describe_refusal("no engine")


def test_the_engine_is_looked_for_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert secrets_module.has_re2()

    def nowhere(_name: str) -> None:
        return None

    monkeypatch.setattr(secrets_module, "find_spec", nowhere)
    assert not secrets_module.has_re2()


def test_of_many_secrets_the_first_are_told() -> None:
    text = "\n".join(one.value for one in make_samples(seed=6, each=2))
    told = inspect(text)
    assert len(told.findings) == MAX_FINDINGS
    allowed = [Allowance(finding.fingerprint, "all that was shown") for finding in told.findings]
    assert not inspect(text, *allowed).is_clean


def test_an_allowance_for_one_secret_in_an_encoded_text_leaves_the_other_blocked() -> None:
    text = b64encode(f"{TOKEN} and npm_{_letters(36)}".encode()).decode()
    first, second = inspect(text).findings
    assert inspect(text, Allowance(first.fingerprint, "revoked")).findings == (second,)
    assert inspect(text, Allowance(second.fingerprint, "revoked")).findings == (first,)


def test_two_rules_that_find_the_same_place_tell_it_once() -> None:
    assert rules_of(f"github_token = '{TOKEN}'") == ["github-token"]


def test_half_a_character_is_no_hindrance() -> None:
    assert rules_of(f"\ud83d {TOKEN}") == ["github-token"]


@given(st.text(max_size=300))
def test_any_text_is_answered_and_every_finding_lies_in_it(text: str) -> None:
    lines = text.split("\n")
    for finding in inspect(text).findings:
        assert isinstance(finding, SecretFinding)
        assert 1 <= finding.line <= len(lines)
        assert 1 <= finding.column <= len(lines[finding.line - 1]) + 1


@given(st.text(alphabet="abcAKIxo-_.", max_size=40))
def test_hints_are_the_words_that_are_there(text: str) -> None:
    words = ["akia", "xox", "a.b", "-", "ab"]
    assert HintMatcher(words).words_in(text) == {word for word in words if word in text.lower()}


@given(st.text(alphabet="ab1-:", max_size=24))
def test_a_hint_can_be_a_pattern(text: str) -> None:
    pattern = "[0-9a-f]{3}[-:][0-9a-f]{3}"
    assert HintMatcher(["-", pattern]).words_in(text) == {
        *(["-"] if "-" in text else []),
        *([pattern] if re.search(pattern, text) else []),
    }


@given(st.data())
def test_every_match_of_a_documented_format_has_a_hint(data: st.DataObject) -> None:
    rule = next(rule for rule in SECRET_RULES if rule.id == "documented-key")
    value = data.draw(st.from_regex(rule.pattern.replace(r"\b", ""), fullmatch=True))
    assert HintMatcher(rule.hints).words_in(value)


def test_few_texts_are_searched_for_documented_formats() -> None:
    rule = next(rule for rule in SECRET_RULES if rule.id == "documented-key")
    text = "Well-known: see https://example.org/a-b and 550e8400-e29b-41d4-a716-446655440000 at 10:30:00."
    assert not HintMatcher(rule.hints).words_in(text)


@pytest.mark.parametrize("rule", SECRET_RULES, ids=lambda rule: rule.id)
def test_a_rule_has_one_value_and_a_hint_that_can_be_looked_for(rule: SecretRule) -> None:
    assert rule.hints
    assert all(hint.strip() for hint in rule.hints)
    assert not list(compile_pattern(rule.pattern).finditer("nothing here"))


def test_rules_are_named_once() -> None:
    assert len({rule.id for rule in SECRET_RULES}) == len(SECRET_RULES)
