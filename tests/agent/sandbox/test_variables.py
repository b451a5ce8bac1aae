"""Secrets in the environment do not reach sandboxed commands, whatever their variables are called."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from sevenfold.agent.sandbox.command import (
    build_sandboxed_environ,
    is_secret_variable,
    list_secret_variables,
)
from sevenfold.agent.sandbox.sandbox import Sandbox, probe_sandbox
from sevenfold.core.events import Event, VariablesHeld
from sevenfold.core.settings.sections import SandboxSettings
from sevenfold.core.tool_kinds import ToolContext

STRIPE = "sk_" + "live_" + "51H8xQ2eZvKYlo2C0aBcDeFgHiJkLmNo"
SECRETS = {
    "DATABASE_URL": "postgres://app:hunter2hunter2@db.internal:5432/app",
    "STRIPE": STRIPE,
    "REDIS": "redis://:s3cr3tpassw0rd@cache:6379/0",
    "GH": "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    "MY_API_KEY": "anything",
    "MYSQL_PWD": "word",
    "PROXY": "http://user:pass@proxy:3128",
    "PASS": "hunter2",
    "MYSQL_ROOT_PW": "hunter2",
    "DB_PASSWORD_PROD": "hunter2",
    "PASSWORD_OF_ADA": "hunter2",
    "SECRET_KEY_BASE": "hunter2",
    "API_KEY_2": "anything",
    "CREDS": "ada:hunter2",
    "ODBC": "Driver={x};Server=h;UID=sa;PWD=hunter2;",
    "JAVA_OPTS": "-Djavax.net.ssl.keyStorePassword=hunter2 -Xmx1g",
    "KAFKA_JAAS": 'PlainLoginModule required username="a" password="hunter2";',
    "BEARER": "abcdef123456",
    "APP_SECRETS": "hunter2",
    "API_TOKENS": "abc,def",
    "SSHPASS": "hunter2",
    "CREDENTIAL_STRING": "ada:hunter2",
    "COOKIE": "session=8f14e45fceea",
    "CURL_OPTS": "-s -u ada:hunter2",
    "MYSQL_ARGS": "-uada -phunter2",
    "WGET_ARGS": "--user ada --password hunter2",
    "NETRC_CONTENT": "machine github.com login ada password hunter2",
    "PGPASS_LINE": "db:5432:*:ada:hunter2",
    "ORACLE": "jdbc:oracle:thin:ada/hunter2@//db:1521/x",
    "HEADER": "Authorization: Bearer abc123def456",
    "SIGNED": "https://b.s3.amazonaws.com/k?X-Amz-Signature=8f14e45fceea167a5a36",
    "SERVICE_JSON": '{"user": "ada", "client_secret": "hunter2"}',
    "SERVICE_YAML": "user: ada\ntoken: hunter2\n",
    "REGION_OPTIONS": "region=eu;api_key=hunter2",
    "QUERY": "https://x.example/hook?key=hunter2xyz",
    "DOCKER_CONFIG_B64": "eyJhdXRocyI6eyJyLmV4YW1wbGUiOnsiYXV0aCI6IllXUmhPbWgxYm5SbGNqST0ifX19",
    "ALGOLIA_ADMIN": "8f14e45fceea167a5a36dedd4bea2543",
    "ENDPOINT": "https://hooks.zapier.com/hooks/catch/123456/abcdef/",
    "SETUP": "x" * 20_000,
    "GATEWAY": "Basic dTpYcXVRckRzMEdQUlo=",
    "LARAVEL": "base64:WOVsoR59nbVLWd8kMCk7clhOwsOE/0PwOUg/b4lrdss=",
    "PHP_OPTIONS": 'a:1:{s:8:"password";s:10:"E5cw7Wxu8d";}',
    "DEPLOY_ID_ED25519": "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU",
    "DOCKER_AUTH_CONFIG": '{"auths":{"r.example":{"auth":"YWRhOmh1bnRlcjI="}}}',
}
PLAIN = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/home/ada",
    "PWD": "/home/ada/project",
    "EDITOR": "vim",
    "COURSE": "Basic training of everybody",
    "LANG": "de_DE.UTF-8",
    "PYTHONPATH": "/home/ada/project/src",
    "GOPROXY": "https://proxy.golang.org,direct",
    "DATABASE_HOST": "db.internal:5432",
    "COLORTERM": "truecolor",
    "CI": "true",
    "NODE_OPTIONS": "--max-old-space-size=4096",
    "PASSWORD_STORE_DIR": "/home/ada/.password-store",
    "SECRET_ROTATION_DAYS": "30",
    "PASS_THROUGH": "1",
    "COMPASS": "north",
    "TOKENIZERS_PARALLELISM": "false",
    "GIT_ASKPASS": "/usr/bin/askpass",
    "MAX_TOKENS": "4096",
    "TOKEN_URL": "https://login.example/token",
    "COMMIT": "8f14e45fceea167a5a36dedd4bea25438f14e45f",
    "INVOCATION_ID": "8f14e45fceea167a5a36dedd4bea2543",
    "TERMINAL_SESSION": "8f14e45f-ceea-467a-9a36-dedd4bea2543",
    "IMAGE": "app/web@sha256:8f14e45fceea167a5a36dedd4bea25438f14e45fceea167a5a36dedd4bea2543",
    "CMAKE_ARGS": "-DWITH_AUTH=ON -DUSE_TOKEN=yes",
    "CFLAGS": "-O2 -pthread -pipe",
    "DOCKER_ARGS": "-p 8080:80 -p8443:443",
    "FZF_DEFAULT_OPTS": "--height 40% --bind ctrl-a:select-all",
    "PYTEST_CURRENT_TEST": "tests/test_token.py::test_token (call)",
    "PS1": "\\u@\\h:\\w\\$ ",
    "LS_COLORS": "rs=0:di=01;34:ln=01;36",
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_variable_that_looks_like_a_secret_is_held_back(name: str) -> None:
    assert is_secret_variable(name, SECRETS[name])
    assert name not in build_sandboxed_environ({name: SECRETS[name]}, "workspace")


@pytest.mark.parametrize("name", PLAIN)
def test_an_ordinary_variable_is_passed_on(name: str) -> None:
    assert build_sandboxed_environ({name: PLAIN[name]}, "workspace")[name] == PLAIN[name]


def test_a_setting_passes_a_variable_on_by_its_name() -> None:
    passed = build_sandboxed_environ(SECRETS, "workspace", ("DATABASE_URL",))
    assert passed["DATABASE_URL"] == SECRETS["DATABASE_URL"]
    assert "STRIPE" not in passed
    assert "DATABASE_URL" not in list_secret_variables(SECRETS, ("DATABASE_URL",))


def test_one_event_names_what_was_held_back(tmp_path: Path) -> None:
    events: list[Event] = []
    sandbox = Sandbox(means={"workspace": "namespaces"}, settings=SandboxSettings())
    environ = {"DATABASE_URL": SECRETS["DATABASE_URL"], "STRIPE": STRIPE, "EDITOR": "vim"}
    place = ToolContext(root=tmp_path, cwd=tmp_path, environ=environ, emit=events.append)
    for _ in range(3):
        orders = sandbox.build_launch_spec("workspace", "env", place)
        assert "STRIPE" not in orders.environ
    assert events == [VariablesHeld("DATABASE_URL, STRIPE")]
    assert STRIPE not in str(events)


def test_what_is_held_back_is_reported_after_the_trials_of_the_sandbox(tmp_path: Path) -> None:
    events: list[Event] = []
    environ = {"PATH": os.environ["PATH"], "STRIPE": STRIPE}
    sandbox = asyncio.run(probe_sandbox(SandboxSettings(), environ))
    place = ToolContext(root=tmp_path, cwd=tmp_path, environ=environ, emit=events.append)
    sandbox.build_launch_spec("workspace", "env", place)
    assert events == [VariablesHeld("STRIPE")]
