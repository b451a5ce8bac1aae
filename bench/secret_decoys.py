"""Texts with nothing to hide that look as if they had, and texts written to keep whoever reads them busy."""

from __future__ import annotations

import random
import string
from base64 import b64encode
from collections.abc import Mapping
from types import MappingProxyType

VENDOR_EXAMPLES = (
    "AKIAIOSFODNN7" + "EXAMPLE",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY",
    "sk_test_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "sk_test_" + "BQokikJOvBiI2HlWgH4olfQ2",
    "110201543:" + "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0"
    "IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
    "AccountKey="
    + "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
)

INNOCENT = (
    *("ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "ghp_YOUR_TOKEN_HERE", "sk-ant-api03-...", "glpat-<token>"),
    *(
        "xoxb-your-slack-bot-token-goes-here",
        "AKIAXXXXXXXXXXXXXXXX",
        "sk-1234567890abcdefghijklmnopqrstuvwxyz",
    ),
    *("postgres://postgres:postgres@localhost:5432/dev", "postgres://user:password@host/db", "http://a:b@c"),
    *(
        "mysql://root:${DB_PASSWORD}@db/app",
        "redis://:<password>@cache:6379",
        "see https://example.com:8443/a@b",
    ),
    *(
        "-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----",
        "it starts with BEGIN PRIVATE KEY",
    ),
    *("token = request.headers['Authorization']", "api_key = os.environ['STRIPE_API_KEY']", "token: string"),
    *(
        "api_key=settings.providers.openai.api_key2",
        "secret = get_secret('projects/1/secrets/db/versions/3')",
    ),
    *("password = form.cleaned_data.get('password2')", "password: required, at least 12 characters, 1 digit"),
    *(
        "PASSWORD=$DB_PASSWORD_2",
        "password: {{ vault.db_password_1 }}",
        "passwordHash: sha256",
        "password is bcrypt2",
    ),
    *(
        "the password is hashed with argon2id",
        "The password is stored in 1Password",
        "password was wrong 3 times",
    ),
    *(
        "the password is never logged",
        "reset the password to continue",
        "the token is valid for 3600 seconds",
    ),
    *("commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "id: 550e8400-e29b-41d4-a716-446655440000"),
    *(
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "cache key 7f3e9a1c is stale",
    ),
    *('"integrity": "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DjNAXgkqbRw=="',),
    *("The task-runner-for-integration-tests-v2 job", "risk-assessment-2024-final-version-of-the-document"),
    *("max_tokens: 128000 and cache_read_input_tokens: 4096", "tokens: input=120,000 output=8,000"),
    *("import secrets; token = secrets.token_urlsafe(32)", "Use the tokenizer: cl100k_base_2024_encoder"),
    *("secretKeyRef: name: db-credentials-v2-production", "the key-value store from 2024-01-01T00:00:00Z"),
    *("bearer tokens are checked in middleware/auth/verify2.ts", "Authorization: Bearer <token>"),
    *("logged in as root with sudo", "sign in with your Google account", "login works with SSO2"),
)

_CHANCE = random.Random(11)
_LETTERS = string.ascii_letters + string.digits
SIZE = 250_000


def _filled(part: str) -> str:
    return (part * (SIZE // len(part) + 1))[:SIZE]


def _drawn(parts: str | list[str]) -> str:
    return "".join(_CHANCE.choices(parts, k=SIZE))[:SIZE]


def _made(size: int) -> str:
    return "".join(_CHANCE.choices(_LETTERS, k=size))


HOSTILE: Mapping[str, str] = MappingProxyType(
    {
        "one letter": _filled("a"),
        "short lines": _filled("a\n"),
        "empty lines": _filled("\n"),
        "spaces": _filled(" "),
        "spaces and quotes": _filled('"' + " " * 500),
        "tabs before nothing": _filled("\t" * 999 + "x"),
        "escapes apart": _filled("%41a"),
        "letters that grow": "\ufdfa" * (SIZE // 3),
        "accents": "é1" * (SIZE // 3),
        "quotes": _filled('"+"'),
        "letters apart": _filled("a b "),
        "beginnings of keys": _filled("sk-ant-"),
        "short beginnings": _filled("AKIA"),
        "web token parts": _filled("eyJhbGci."),
        "slack parts": _filled("xoxb.a-"),
        "headers of keys": _filled("-----BEGIN RSA PRIVATE KEY-----\nA: b\n"),
        "passwords without end": _filled("password is "),
        "names of keys": _filled("secret_key=a "),
        "names without end": _filled("token"),
        "addresses": _filled("http://a:b"),
        "at signs": _filled("a://b:c@"),
        "hex": _filled("6a"),
        "bytes apart": _filled("6a:"),
        "codes": _filled("65, "),
        "base64 in base64": b64encode(b64encode(b64encode(b"sk-ant- hello " * 7_500))).decode()[:SIZE],
        "random words": "".join(_made(17) + " " for _ in range(SIZE // 36)),
        "random words in quotes": "".join(f'x = "{_made(17)}" ' for _ in range(SIZE // 48)),
        "hashes": "".join(f"{_CHANCE.getrandbits(128):032x}\n" for _ in range(SIZE // 66)),
        "keys that are hashes": "".join(
            f"key of commit {_CHANCE.getrandbits(128):032x}\n" for _ in range(SIZE // 94)
        ),
        "noise": _drawn(_LETTERS),
        "printable noise": _drawn(string.printable),
        "noise of beginnings": _drawn(
            ["sk-", "ant-", "xox", "b-", "AKIA", "eyJ", ".", "gh", "p_", "_", "-", "a", " "]
        ),
    }
)
"""250 KB each; those of random words and hashes half of it."""
