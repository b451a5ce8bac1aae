"""Secrets that were made up, of the shapes that issuers hand out, and the ways in which people disguise them.

Written from the issuers' descriptions and not from our rules, so that a rule that is too narrow shows. Every
value comes from a seed; none was ever issued.
"""

from __future__ import annotations

import base64
import random
import re
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from textwrap import wrap
from types import MappingProxyType
from urllib.parse import quote

_ALPHABETS = MappingProxyType(
    {
        "A": string.ascii_letters + string.digits,
        "U": string.ascii_uppercase + string.digits,
        "l": string.ascii_lowercase + string.digits,
        "h": "0123456789abcdef",
        "H": "0123456789ABCDEF",
        "v": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        "d": string.digits,
        "w": string.ascii_letters + string.digits + "_-",
        "b": string.ascii_letters + string.digits + "+/",
    }
)

FORMATS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "cloud": (
            *(
                "AKIA{U16}",
                "ASIA{U16}",
                "aws_secret_access_key = {b40}",
                "ABSK{b109}=",
                "AIza{w35}",
                "GOCSPX-{w28}",
            ),
            *(
                "ya29.{w120}",
                "AccountKey={b86}==;EndpointSuffix=core.windows.net",
                "{w3}8Q~{w34}",
                "LTAI{A20}",
            ),
            *(
                "https://x.blob.core.windows.net/c?sv=2024-01-01&sig={b43}%3D",
                "{A52}JQQJ99{A26}",
                "1//0{w60}",
            ),
            *(
                "Endpoint=sb://x.windows.net/;SharedAccessKey={b43}=",
                "{A76}AZDO{A4}",
                "dop_v1_{h64}",
                "hvs.{w95}",
            ),
            *(
                "dapi{h32}",
                "dp.pt.{A43}",
                "HRKU-{w60}",
                "{A14}.atlasv1.{w67}",
                "tskey-auth-{A17}-{A32}",
                "nfp_{A36}",
            ),
            *("pscale_tkn_{w43}", "pul-{h40}", "sbp_{h40}", "fm2_{b120}", "vcp_{A56}", "v1.0-{h24}-{h146}"),
        ),
        "forge": (
            *("ghp_{A36}", "gho_{A36}", "ghs_{A36}", "github_pat_{A22}_{A59}", "glpat-{w20}", "glrt-{w20}"),
            *(
                "glptt-{h40}",
                "GR1348941{w20}",
                "ATATT3xFfGF0{w170}",
                "ATBB{A32}",
                "ATCTT3xFfGN0{w170}",
                "npm_{A36}",
            ),
            *("//packages.internal/:_authToken={h8}-{h4}-{h4}-{h4}-{h12}", "pypi-AgEIcHlwaS5vcmc{w160}"),
            *(
                "pypi-AgENdGVzdC5weXBpLm9yZw{w150}",
                "rubygems_{h48}",
                "cio{A32}",
                "oy2{l43}",
                "dckr_pat_{w27}",
            ),
            *("AKCp{A69}", "CCIPAT_{A22}_{h40}", "bkua_{h40}", "squ_{h40}"),
        ),
        "chat": (
            *(
                "xoxb-{d12}-{d13}-{A24}",
                "xoxp-{d12}-{d12}-{d13}-{h32}",
                "xapp-1-A{U10}-{d13}-{h64}",
                "SK{h32}",
            ),
            *("https://hooks.slack.com/services/T{U10}/B{U10}/{A24}", "N{A25}.{A6}.{w38}", "{d10}:AA{w33}"),
            *("https://discord.com/api/webhooks/{d18}/{w68}", "SG.{w22}.{w43}", "key-{h32}", "{h32}-us14"),
            *("xkeysib-{h64}-{A16}", "re_{A8}_{A24}", "xoxe.xoxp-1-{A146}"),
        ),
        "payment": (
            *(
                "sk_live_{A24}",
                "sk_live_{A99}",
                "rk_live_{A99}",
                "sk_test_{A99}",
                "whsec_{A32}",
                "sq0csp-{w43}",
            ),
            *("access_token$production${l16}${h32}", "EAAA{w60}", "shpat_{h32}", "FLWSECK-{h32}-X"),
            *("access-production-{h8}-{h4}-{h4}-{h4}-{h12}", "PAYPAL_SECRET=E{w79}"),
        ),
        "database": (
            *("postgres://app:{A20}@db.internal:5432/app", "mysql://root:{A16}!@10.0.3.4/shop"),
            *("mongodb+srv://svc:{A18}@c0.ab12c.mongodb.net", "redis://:{h40}@cache.internal:6379/0"),
            *("amqps://svc:{A24}@mq.internal/vh", "Server=db1;Uid=sa;Pwd={A14}!;Database=x"),
        ),
        "key": (
            "-----BEGIN RSA PRIVATE KEY-----\n{b64}\n{b64}\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjE{b50}\n{b70}\n-----END OPENSSH",
            "-----BEGIN PRIVATE KEY-----\\nMII{b61}\\n{b64}\\n-----END PRIVATE KEY-----\\n",
            "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES,{h32}\n\n{b64}\n{b64}\n",
            "AGE-SECRET-KEY-1{U58}",
            "eyJhbGciOiJIUzI1NiJ9.eyJ{w80}.{w43}",
        ),
        "model": (
            *(
                "sk-ant-api03-{w93}AA",
                "sk-proj-{w74}T3BlbkFJ{w74}",
                "sk-{A20}T3BlbkFJ{A20}",
                "sk-or-v1-{h64}",
            ),
            *("gsk_{A52}", "hf_{A34}", "xai-{A80}", "pplx-{A48}", "r8_{A37}", "nvapi-{w64}", "sk-{h32}"),
            *(
                "lsv2_pt_{h32}_{h10}",
                "pcsk_{A6}_{A63}",
                "csk-{l48}",
                "tvly-dev-{A32}",
                "sk-ant-admin01-{w93}AA",
            ),
        ),
        "tool": (
            *(
                "glsa_{A32}_{h8}",
                "NRAK-{U27}",
                "sntryu_{h64}",
                "phx_{A43}",
                "rnd_{A32}",
                "dt0c01.{U24}.{U64}",
                "PMAK-{h24}-{h34}",
            ),
            *("CLOJARS_{h60}", "sgp_{h16}_{h40}", "sgp_{h40}"),
            *(
                "lin_api_{A40}",
                "ntn_{d11}{A35}",
                "pat{A14}.{h64}",
                "figd_{w40}",
                "pat-na1-{h8}-{h4}-{h4}-{h4}-{h12}",
            ),
        ),
        "generic": (
            *(
                "api_key = '{A32}'",
                "INTERNAL_TOKEN={h40}",
                'client_secret: "{w36}"',
                "JWT_SIGNING_KEY={b44}=",
            ),
            *(
                "Authorization: Bearer {w40}",
                "DB_PASSWORD={A12}!",
                "password: {A14}",
                "curl -u deploy:{A16} https://x.y",
            ),
        ),
        "prose": (
            *(
                "la contraseña es {A10}$4",
                "a senha é {A10}#3",
                "het wachtwoord is {A10}%8",
                "пароль: {A10}!5",
            ),
            *("パスワードは{A10}!6", "비밀번호: {A10}&7"),
            *("the admin password is {A10}!", "log in as root with {A8}#{A4}", "Das Passwort lautet {A12}"),
            *(
                "the wifi password was changed to {A12}$",
                "ssh in with the password `{A9}&{A3}`",
                "密码是{A10}!",
            ),
            *(
                "The staging password for bob: {A12}",
                "le mot de passe est {A11}!",
                "passphrase is '{A8}-{A8}-{A4}!'",
            ),
        ),
    }
)
PROVIDERS = ("cloud", "forge", "chat", "payment", "database", "key", "model", "tool")
"""Families with a form of their own. The others are told by what stands around them."""

NOTES = (
    "---\nname: deploy\ntype: project\n---\nThe staging account uses {} for now.\n",
    "- runner on box 3\n- credential: {}\n- ask Dana before rotating it\n",
    "To reproduce, set it first:\n\n```sh\nexport VALUE={}\nmake run\n```\n",
    "| host | value |\n|---|---|\n| staging | {} |\n",
    'The config is {{"timeout": 30, "value": "{}"}} on every worker.\n',
    "We tried it with `{}`, and it worked (2026-03-01).\n",
)


@dataclass(frozen=True, slots=True)
class Sample:
    family: str
    shape: str
    """Which format it is of, as it stands in the table."""
    value: str = field(repr=False)


def make_samples(seed: int, each: int = 1) -> list[Sample]:
    chance = random.Random(seed)
    return [
        Sample(family, shape, fill_shape(shape, chance))
        for _ in range(each)
        for family, shapes in FORMATS.items()
        for shape in shapes
    ]


def in_note(value: str, chance: random.Random) -> str:
    return chance.choice(NOTES).format(value)


def fill_shape(shape: str, chance: random.Random) -> str:
    """`{A36}` stands for 36 characters of alphabet A, none of them at an end that is no letter or digit."""

    def some(match: re.Match[str]) -> str:
        letters, size = _ALPHABETS[match[1]], int(match[2])
        ends = [one for one in letters if one.isalnum()]
        made = [chance.choice(letters) for _ in range(size)]
        made[0], made[-1] = chance.choice(ends), chance.choice(ends)
        return "".join(made)

    return re.sub(r"\{([A-Za-z])(\d+)\}", some, shape)


def _split(value: str, chance: random.Random) -> str:
    at = chance.randrange(3, len(value) - 3)
    return f"{value[:at]}\n    {value[at:]}"


def _concatenated(value: str, chance: random.Random) -> str:
    at = chance.randrange(3, len(value) - 3)
    quote_, plus = chance.choice("\"'"), chance.choice((" + ", " ", " +\n    ", " . "))
    return f"{quote_}{value[:at]}{quote_}{plus}{quote_}{value[at:]}{quote_}"


def _wide(value: str) -> str:
    return "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in value)


def _base64(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


TRANSFORMS: Mapping[str, Callable[[str, random.Random], str]] = MappingProxyType(
    {
        "base64": lambda value, _: _base64(value),
        "base64 for URLs": lambda value, _: base64.urlsafe_b64encode(value.encode()).decode().rstrip("="),
        "base64 in lines": lambda value, _: "\n".join(wrap(_base64(value), 32)),
        "base64 twice": lambda value, _: _base64(_base64(value)),
        "base32": lambda value, _: base64.b32encode(value.encode()).decode(),
        "hex": lambda value, _: value.encode().hex(),
        "hex escapes": lambda value, _: "".join(f"\\x{ord(one):02x}" for one in value),
        "URL": lambda value, _: "".join(f"%{ord(one):02X}" for one in value),
        "URL, what must be": lambda value, _: quote(value, safe=""),
        "\\u escapes": lambda value, _: "".join(f"\\u{ord(one):04x}" for one in value),
        "HTML entities": lambda value, _: "".join(f"&#{ord(one)};" for one in value),
        "zero width": lambda value, _: "\u200b".join(value),
        "full width": lambda value, _: _wide(value),
        "lookalikes": lambda value, _: value.translate(str.maketrans("AEOPCTaeopc", "АЕОРСТаеорс")),
        "split over lines": _split,
        "concatenated": _concatenated,
        "spaced": lambda value, _: " ".join(value),
        "reversed": lambda value, _: value[::-1],
        "character codes": lambda value, _: ", ".join(str(ord(one)) for one in value),
    }
)
"""What keeps a value readable for whoever knows, and hides it from whoever looks for its form."""
