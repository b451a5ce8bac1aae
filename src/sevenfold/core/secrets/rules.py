"""Every rule: the formats, and secrets that only the words around them give away."""

from __future__ import annotations

from sevenfold.core.secrets.formats import FORMAT_RULES, SecretRule, SecretRuleId

_NAME = (
    "(?:(?:api|access|auth|private|signing|encryption|master|account)[_. -]?key"
    "|secret|token|credential|bearer)"
    "(?:[_.-][A-Za-z0-9_.-]*|key[A-Za-z0-9_.-]*|value|id|s|[0-9]+)?"
)
_PASS = "pass(?:word|wort|wd|phrase|code)|kennwort|pwd"
_GIVEN = r"[\"'`*\])]{0,3}\s{0,4}(?::=|=>|->|==|=|:|\|)\s{0,4}"
_QUOTES = "[\"'`*]{0,3}"
_WORDS = f"{_PASS}|mot de passe|contraseña|senha|wachtwoord|пароль|密码|口令|パスワード|비밀번호"
_LINKS = r"(?:\b(?:is|was|to|ist|lautet|est|es)\b| é |это|是|为|は|:|：|=|->|→|—)"
_TOLD = r"([^\s\"'`,;<>|]*(?:[0-9!@#$%^&*?~+]|[a-z][A-Z]|[A-Z][A-Z])[^\s\"'`,;<>|]*)"
"""A password in a sentence has something in it that the words of the sentence have not."""

_GENERIC = (
    SecretRule(
        id=SecretRuleId("url-password"),
        name="Password in a URL",
        hints=("://",),
        pattern=r"[A-Za-z][A-Za-z0-9+.-]*://[^\s:@/\"'`<>]*:([^\s@/\"'`<>]{3,})@[A-Za-z0-9.\[-]",
        kind="url",
    ),
    SecretRule(
        id=SecretRuleId("connection-string"),
        name="Password in a connection string",
        hints=("pwd", "password"),
        pattern=r"(?i:(?:server|host|data source)=[^;\n]{1,100};(?:[^;\n]{0,100};){0,6}(?:pwd|password)=)"
        r"([^;\s\"'`<>]{6,})",
        kind="url",
    ),
    SecretRule(
        id=SecretRuleId("authorization-header"),
        name="Authorization header",
        hints=("bearer", "basic", "authorization"),
        pattern=r"(?i:authorization[\"'`]?\s?[:=]\s?[\"'`]?(?:bearer|basic|token)|\bbearer) "
        r"([A-Za-z0-9+/=_.~-]{16,})",
        kind="key",
    ),
    SecretRule(
        id=SecretRuleId("key-assignment"),
        name="Value named as a key, token or secret",
        hints=("key", "secret", "token", "credential", "bearer"),
        pattern=rf"(?i:{_NAME}){_GIVEN}{_QUOTES}([^\s\"'`,;<>(){{}}\[\]|*]{{16,}})",
        kind="key",
    ),
    SecretRule(
        id=SecretRuleId("password-assignment"),
        name="Value named as a password",
        hints=("pass", "pwd", "kennwort"),
        pattern=rf"(?i:{_PASS})[A-Za-z0-9_.-]*{_GIVEN}{_QUOTES}([^\s\"'`,;<>|]{{6,}})",
        kind="password",
    ),
    SecretRule(
        id=SecretRuleId("password-option"),
        name="Password on a command line",
        hints=("--pass", "-u ", "--user", "sshpass"),
        pattern=r"(?:--pass(?:word|wd|phrase)?[= ]|sshpass -p ?|(?:-u|--user) [\"']?[A-Za-z0-9_.@-]+:)"
        r"[\"']?([^\s\"'`,;<>|]{6,})",
        kind="password",
    ),
    SecretRule(
        id=SecretRuleId("password-in-prose"),
        name="Password in a sentence",
        hints=(
            "pass",
            "kennwort",
            "pwd",
            "contrase",
            "senha",
            "wachtwoord",
            "пароль",
            "密码",
            "口令",
            "パスワード",
            "비밀번호",
        ),
        pattern=rf"(?i:{_WORDS})[^\n]{{0,40}}?{_LINKS}\s{{0,3}}{_QUOTES}{_TOLD}",
        kind="told",
    ),
    SecretRule(
        id=SecretRuleId("password-with"),
        name="Password in a sentence",
        hints=("pass", "pwd", "kennwort", "log", "sign"),
        pattern=rf"(?i:(?:with|using|and|mit|avec|con)(?: the| dem)? (?:{_WORDS})"
        rf"|(?:log ?in|logged in|sign ?in)[^\n]{{1,60}}? with) {_QUOTES}{_TOLD}",
        kind="told",
    ),
)

SECRET_RULES: tuple[SecretRule, ...] = (*FORMAT_RULES, *_GENERIC)
"""In the order in which they are asked: of two that find the same, the first one names it."""
