"""Lines with keys in the formats that vendors document, and lines that look like them and hold none.

A row is a vendor: how people call it, the variable that its manual uses, what it calls the value, and the
shape of the value. `SEEN` have rules of their own. `UNSEEN` must never get one: they show what the rules find
of a vendor that nobody has heard of. Every value comes from a seed when the set is made; none was issued.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.secret_samples import fill_shape


@dataclass(frozen=True, slots=True)
class Vendor:
    name: str
    variable: str
    what: str
    shape: str

    @property
    def host(self) -> str:
        return re.sub(r"[^a-z0-9]", "", self.name.lower()) + ".com"

    @property
    def camel(self) -> str:
        first, *rest = self.variable.lower().split("_")
        return first + "".join(map(str.capitalize, rest))


def _rows(table: str) -> tuple[Vendor, ...]:
    rows = (line.split("|") for line in table.strip().splitlines())
    return tuple(
        Vendor(*(cell.strip() for cell in (name, variable, what, shape)))
        for name, variable, what, shape in rows
    )


_UUID = "{h8}-{h4}-4{h3}-a{h3}-{h12}"

SEEN = _rows(
    f"""
    AWS | AWS_ACCESS_KEY_ID | access key | AKIA{{U16}}
    AWS STS | AWS_SESSION_TOKEN | session token | IQoJb3JpZ2luX2Vj{{b300}}
    AWS federation | AWS_SESSION_TOKEN | session token | FwoGZXIvYXdzE{{b300}}
    Google | GOOGLE_API_KEY | API key | AIza{{w35}}
    Firebase messaging | FCM_SERVER_KEY | server key | AAAA{{w7}}:APA91b{{w134}}
    Azure | AZURE_CLIENT_SECRET | client secret | {{w3}}8Q~{{w34}}
    DigitalOcean | DIGITALOCEAN_TOKEN | token | dop_v1_{{h64}}
    Databricks | DATABRICKS_TOKEN | token | dapi{{h32}}
    Doppler | DOPPLER_TOKEN | service token | dp.st.{{l4}}.{{A43}}
    Fly | FLY_API_TOKEN | deploy token | fo1_{{w43}}
    Fly.io | FLY_ACCESS_TOKEN | macaroon | fm2_{{b120}}
    Vault | VAULT_TOKEN | token | hvs.{{w95}}
    Old Vault | VAULT_TOKEN | root token | s.{{A24}}
    Vault batch | VAULT_TOKEN | batch token | hvb.{{w140}}
    Heroku | HEROKU_API_KEY | API key | HRKU-{{w60}}
    Netlify | NETLIFY_AUTH_TOKEN | token | nfp_{{A36}}
    PlanetScale | PLANETSCALE_PASSWORD | password | pscale_pw_{{w43}}
    Pulumi | PULUMI_ACCESS_TOKEN | access token | pul-{{h40}}
    Render | RENDER_API_KEY | API key | rnd_{{A28}}
    Supabase | SUPABASE_ACCESS_TOKEN | access token | sbp_{{h40}}
    Tailscale | TS_AUTHKEY | auth key | tskey-auth-{{A17}}-{{A32}}
    Terraform | TF_TOKEN | token | {{A14}}.atlasv1.{{w67}}
    Clojars | CLOJARS_TOKEN | deploy token | CLOJARS_{{h60}}
    Docker Hub | DOCKER_PASSWORD | access token | dckr_pat_{{w27}}
    GitHub | GITHUB_TOKEN | token | ghp_{{A36}}
    GitLab | GITLAB_TOKEN | access token | glpat-{{w20}}
    npm | NPM_TOKEN | token | npm_{{A36}}
    PyPI | TWINE_PASSWORD | upload token | pypi-AgEIcHlwaS5vcmc{{w160}}
    RubyGems | GEM_HOST_API_KEY | API key | rubygems_{{h48}}
    Sonar | SONAR_TOKEN | token | squ_{{h40}}
    SonarCloud | SONAR_LOGIN | login | {{h40}}
    Sourcegraph | SRC_ACCESS_TOKEN | access token | sgp_{{h16}}_{{h40}}
    Sidekiq | BUNDLE_ENTERPRISE__CONTRIBSYS__COM | license | {{h8}}:{{h8}}
    Snyk | SNYK_TOKEN | token | {_UUID}
    Anthropic | ANTHROPIC_API_KEY | API key | sk-ant-api03-{{w93}}AA
    OpenAI | OPENAI_API_KEY | API key | sk-proj-{{w74}}T3BlbkFJ{{w74}}
    Groq | GROQ_API_KEY | API key | gsk_{{A52}}
    Hugging Face | HF_TOKEN | token | hf_{{A34}}
    Slack | SLACK_BOT_TOKEN | bot token | xoxb-{{d12}}-{{d13}}-{{A24}}
    Discord | DISCORD_TOKEN | bot token | N{{A25}}.{{A6}}.{{w38}}
    Telegram | TELEGRAM_BOT_TOKEN | bot token | {{d10}}:AA{{w33}}
    SendGrid | SENDGRID_API_KEY | API key | SG.{{w22}}.{{w43}}
    Mailgun | MAILGUN_API_KEY | API key | key-{{h32}}
    Twilio | TWILIO_API_KEY | API key | SK{{h32}}
    Facebook | FB_ACCESS_TOKEN | access token | EAAC{{A150}}
    Facebook app | FB_APP_TOKEN | app token | {{d15}}|{{w27}}
    Stripe | STRIPE_SECRET_KEY | secret key | sk_live_{{A24}}
    Shopify | SHOPIFY_TOKEN | access token | shpat_{{h32}}
    Square | SQUARE_ACCESS_TOKEN | access token | sq0atp-{{w22}}
    1Password | OP_SERVICE_ACCOUNT_TOKEN | service token | ops_eyJ{{w250}}
    1Password account | OP_SECRET_KEY | secret key | A3-{{U6}}-{{U6}}-{{U5}}-{{U5}}-{{U5}}-{{U5}}
    Airtable | AIRTABLE_TOKEN | token | pat{{A14}}.{{h64}}
    Dynatrace | DT_API_TOKEN | API token | dt0c01.{{U24}}.{{U64}}
    Figma | FIGMA_TOKEN | token | figd_{{w40}}
    Grafana | GRAFANA_TOKEN | service account token | glsa_{{A32}}_{{h8}}
    Linear | LINEAR_API_KEY | API key | lin_api_{{A40}}
    New Relic | NEW_RELIC_API_KEY | user key | NRAK-{{U27}}
    New Relic agent | NEW_RELIC_LICENSE_KEY | license key | {{h36}}NRAL
    New Relic insights | NEW_RELIC_INSERT_KEY | insert key | NRII-{{w32}}
    Notion | NOTION_TOKEN | integration token | ntn_{{d11}}{{A35}}
    PostHog | POSTHOG_API_KEY | personal API key | phx_{{A43}}
    Postman | POSTMAN_API_KEY | API key | PMAK-{{h24}}-{{h34}}
    Sentry | SENTRY_AUTH_TOKEN | auth token | sntryu_{{h64}}
    Sumo Logic | SUMO_ACCESS_KEY | access key | {{A64}}
    Sumo Logic account | SUMO_ACCESS_ID | access id | su{{A12}}
    Sevenfold | SEVENFOLD_TEAM | team token | sfm_{{l12}}_{{w43}}
    """.replace("{d15}|{w27}", "{d15}!{w27}")
)
"""Vendors with rules."""

UNSEEN = _rows(
    f"""
    Ably | ABLY_API_KEY | API key | {{A6}}.{{A6}}:{{A43}}
    Adafruit | ADAFRUIT_IO_KEY | key | aio_{{A28}}
    Adobe | ADOBE_CLIENT_SECRET | client secret | p8e-{{w32}}
    Agora | AGORA_APP_CERTIFICATE | app certificate | {{h32}}
    Airbrake | AIRBRAKE_PROJECT_KEY | project key | {{h32}}
    Algolia | ALGOLIA_ADMIN_KEY | admin API key | {{h32}}
    Amplitude | AMPLITUDE_SECRET_KEY | secret key | {{h32}}
    Asana | ASANA_TOKEN | personal access token | 1/{{d16}}:{{h32}}
    AssemblyAI | ASSEMBLYAI_API_KEY | API key | {{h32}}
    Auth0 | AUTH0_CLIENT_SECRET | client secret | {{w64}}
    Beamer | BEAMER_API_KEY | API key | b_{{b44}}=
    Bitly | BITLY_TOKEN | access token | {{h40}}
    Bugsnag | BUGSNAG_API_KEY | API key | {{h32}}
    ClickUp | CLICKUP_TOKEN | personal token | pk_{{d8}}_{{U32}}
    Cohere | COHERE_API_KEY | API key | {{A40}}
    Coinbase | COINBASE_TOKEN | access token | {{w64}}
    Confluent | CONFLUENT_SECRET | API secret | {{b64}}
    Contentstack | CONTENTSTACK_TOKEN | management token | cs{{h32}}
    Datadog | DD_API_KEY | API key | {{h32}}
    Datadog app | DD_APP_KEY | application key | {{h40}}
    Deepgram | DEEPGRAM_API_KEY | API key | {{h40}}
    Defined Networking | DNKEY | API key | dnkey-{{U26}}-{{U52}}
    Duffel | DUFFEL_ACCESS_TOKEN | access token | duffel_live_{{w43}}
    EasyPost | EASYPOST_API_KEY | API key | EZAK{{A54}}
    Fastly | FASTLY_API_TOKEN | API token | {{w32}}
    Frame.io | FRAMEIO_TOKEN | developer token | fio-u-{{w64}}
    GoCardless | GOCARDLESS_ACCESS_TOKEN | access token | live_{{w40}}
    Hetzner | HCLOUD_TOKEN | API token | {{A64}}
    Honeycomb | HONEYCOMB_API_KEY | API key | {{A22}}
    Infracost | INFRACOST_API_KEY | API key | ico-{{A32}}
    Intercom | INTERCOM_ACCESS_TOKEN | access token | dG9rO{{b54}}=
    Linode | LINODE_TOKEN | personal access token | {{h64}}
    Lob | LOB_API_KEY | secret key | live_{{h35}}
    Mattermost | MATTERMOST_TOKEN | access token | {{l26}}
    MessageBird | MESSAGEBIRD_ACCESS_KEY | access key | {{A25}}
    Mistral | MISTRAL_API_KEY | API key | {{A32}}
    Mixpanel | MIXPANEL_API_SECRET | API secret | {{h32}}
    Okta | OKTA_API_TOKEN | API token | 00{{w40}}
    OpenShift | OPENSHIFT_TOKEN | login token | sha256~{{w43}}
    OpenWeather | OPENWEATHER_API_KEY | API key | {{h32}}
    Opsgenie | OPSGENIE_API_KEY | API key | {_UUID}
    PagerDuty | PAGERDUTY_TOKEN | REST key | u+{{w18}}
    Postmark | POSTMARK_SERVER_TOKEN | server token | {_UUID}
    Prefect | PREFECT_API_KEY | API key | pnu_{{A36}}
    Pusher | PUSHER_APP_SECRET | app secret | {{h20}}
    RapidAPI | RAPIDAPI_KEY | key | {{h10}}msh{{h15}}p{{h6}}jsn{{h12}}
    ReadMe | README_API_KEY | API key | rdme_{{l70}}
    Rollbar | ROLLBAR_ACCESS_TOKEN | access token | {{h32}}
    Sanity | SANITY_API_TOKEN | write token | sk{{A178}}
    Scalingo | SCALINGO_API_TOKEN | API token | tk-us-{{w48}}
    Sendbird | SENDBIRD_API_TOKEN | API token | {{h40}}
    Shippo | SHIPPO_TOKEN | live token | shippo_live_{{h40}}
    SparkPost | SPARKPOST_API_KEY | API key | {{h40}}
    Squarespace | SQUARESPACE_API_KEY | API key | {_UUID}
    Todoist | TODOIST_API_TOKEN | API token | {{h40}}
    Travis | TRAVIS_TOKEN | API token | {{w22}}
    Trello | TRELLO_TOKEN | token | {{h64}}
    Typeform | TYPEFORM_TOKEN | personal token | tfp_{{w59}}
    Vultr | VULTR_API_KEY | API key | {{U36}}
    Webflow | WEBFLOW_TOKEN | site token | {{h64}}
    Weights and Biases | WANDB_API_KEY | API key | {{h40}}
    Yandex Cloud | YC_API_KEY | API key | AQVN{{w36}}
    Zendesk | ZENDESK_API_TOKEN | API token | {{A40}}
    Zoom | ZOOM_CLIENT_SECRET | client secret | {{A32}}
    Lemon Squeezy | LEMON_WEBHOOK_SECRET | webhook secret | {{h40}}
    Upstash | UPSTASH_REDIS_REST_TOKEN | REST token | A{{A53}}=
    """
)
"""Vendors without rules, chosen before the rules that find them were written."""

SENTENCES = (
    "The {name} {what} for staging is {value}.",
    "Dana set the {name} {what} to `{value}` yesterday.",
    "For {name} we use {value} until the account is moved.",
    "- {name} {what}: {value} (rotate in May)",
    "| {name} | {what} | {value} |",
    "Here is the {what} for {name} that you asked for: {value}",
    "I tested it with {name} {what} {value}, and it works.",
    "{name} {what}:\n\n    {value}\n",
)
ASSIGNMENTS = (
    "export {variable}={value}",
    '{variable} = "{value}"',
    '  "{camel}": "{value}",',
    "{variable}: {value}",
    "const {camel} = '{value}';",
    'curl -H "Authorization: Bearer {value}" https://api.{host}/v1/me',
    "curl https://api.{host}/v1/items -H 'X-Api-Key: {value}'",
    "GET https://api.{host}/v1/items?access_token={value}&limit=10",
    "2026-03-01T12:00:00Z ERROR {host}: request failed, {variable}={value}, retrying",
    '<add key="{variable}" value="{value}" />',
    'client = Client("{host}", "{value}")',
    "docker run -e {variable}={value} -p 8080:80 app",
)
WHOLE = (
    'seen|{{"kty":"EC","crv":"P-256","x":"{w43}","y":"{w43}","d":"{w43}"}}',
    'seen|{{"kty": "OKP", "crv": "Ed25519", "d": "{w43}", "x": "{w43}"}}',
    'seen|{{"kty":"RSA","n":"{w342}","e":"AQAB","d":"{w342}","p":"{w171}"}}',
    "seen|otpauth://totp/Acme:ada%40example.com?secret={v32}&issuer=Acme",
    "seen|Scan otpauth://hotp/box?secret={v16}&counter=3 with the phone.",
    f"seen|Authorization: {_UUID}",
    f"seen|curl -H 'Authorization: {_UUID}' https://api.internal/v2/devices",
    "seen|https://{h8}:{h8}@enterprise.contribsys.com/",
    "seen|https://endpoint4.collection.sumologic.com/receiver/v1/http/{b86}==",
    "seen|aws_session_token = IQoJb3JpZ2luX2Vj{b400}==",
    f"seen|snyk auth {_UUID}",
    "seen|sonar.login={h40}",
)
"""Lines that are a format themselves."""


@dataclass(frozen=True, slots=True)
class VendorLine:
    kind: str
    """`seen`, `unseen` or `nothing`."""
    source: str
    """The vendor or the kind of decoy."""
    text: str = field(repr=False)


def vendor_lines(seed: int = 31) -> list[VendorLine]:
    """For each vendor three sentences and three other lines."""
    chance = random.Random(seed)
    lines = [
        VendorLine(kind, vendor.name, _line(vendor, form, chance))
        for kind, vendors in (("seen", SEEN), ("unseen", UNSEEN))
        for vendor in vendors
        for form in (*chance.sample(SENTENCES, 3), *chance.sample(ASSIGNMENTS, 3))
    ]
    for row in WHOLE:
        kind, _, shape = row.partition("|")
        text = fill_shape(shape, chance).replace("{{", "{").replace("}}", "}")
        lines.append(VendorLine(kind, "whole line", text))
    return lines


def _line(vendor: Vendor, form: str, chance: random.Random) -> str:
    return form.format(
        name=vendor.name,
        variable=vendor.variable,
        what=vendor.what,
        camel=vendor.camel,
        host=vendor.host,
        value=fill_shape(vendor.shape, chance).replace("!", "|"),
    )


DECOYS = (
    f"request {_UUID} took 31 ms",
    f'"id": "{_UUID}",',
    f"trace_id={_UUID} span_id={{h16}}",
    f"The primary key of the row is {_UUID}.",
    f"idempotency key: {_UUID}",
    f"tenant {_UUID} was moved to eu-west-1",
    f'<Project Guid="{_UUID}">',
    "commit {h40}",
    "Fixed in {h40}, see the pull request.",
    "uses: actions/checkout@{h40} # v4.2.1",
    "rev: {h40}",
    "HEAD is now at {h7} tokens: count them once",
    "index {h7}..{h7} 100644",
    "image: app@sha256:{h64}",
    "sha256 = {h64}",
    '"integrity": "sha512-{b86}==",',
    "--hash=sha256:{h64} \\",
    "md5sum: {h32}  release.tar.gz",
    "{h64}  dist/app-1.2.0.tar.gz",
    'ETag: "{h32}"',
    "checksum: {h40}",
    "container {h64} exited with 137",
    "cache key: linux-node20-{h64}",
    "restore-keys: npm-{h40}",
    "the cache key {h40} is stale",
    "SHA256:{b43} ada@laptop (ED25519)",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b43} ada@laptop",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC{b300}= ada@laptop",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A{b32}\n-----END PUBLIC KEY-----",
    "public_key = {b43}=",
    "fingerprint of the signing key: {h40}",
    "![logo](data:image/png;base64,iVBORw0KGgo{b400}=)",
    "background: url(data:image/svg+xml;base64,PHN2Zy{b300}=)",
    "src: url(data:font/woff2;base64,d09GMg{b300})",
    "https://www.youtube.com/watch?v={w11}",
    "https://docs.google.com/document/d/1{w43}/edit",
    "https://github.com/acme/app/commit/{h40}",
    "https://cdn.example.net/assets/main.{h8}.js",
    "dist/assets/index-{w8}.css and dist/vendor.{h20}.js",
    "src/main/java/com/acme/security/token/TokenKeyProviderFactory{d1}Test.java",
    "/var/lib/docker/overlay2/{h64}/merged",
    "pod/checkout-api-{l9}-{l5} is Running",
    "deployment api-key-service-{l9}-{l5} restarted",
    "arn:aws:iam::{d12}:role/token-service",
    "i-0{h17} in subnet-0{h17}",
    "0x{h40} received 3 tokens",
    "api_key: YOUR_API_KEY",
    "export API_TOKEN=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "client_secret: <your-client-secret>",
    "password: ********",
    "GITHUB_TOKEN=${{{{ secrets.GITHUB_TOKEN }}}}",
    "token = os.environ['SERVICE_TOKEN_V2']",
    "const apiKey = process.env.ACME_API_KEY2;",
    "api_key = get_secret('prod/payment/api-key-v2')",
    "secret: my-super-secret-value-for-tests",
    "AWS_SECRET_ACCESS_KEY=REPLACE_ME_WITH_YOUR_SECRET_KEY_1",
    "token: 1234567890abcdef1234567890abcdef",
    "access_token: 0123456789abcdef0123456789abcdef01234567",
    "api_key=deadbeefdeadbeefdeadbeefdeadbeef",
    "the key is 00000000-0000-0000-0000-000000000000",
    "secret = 'abcdefghijklmnopqrstuvwxyz123456'",
    "The tokenizer cl100k_base_2024_encoder splits it in {d4} tokens.",
    "max_tokens={d5}, cache_read_input_tokens={d6}, total={d8}",
    "keyboardShortcut: CtrlShiftAltF{d1}",
    "sort_key = created_at_2026_desc_nulls_last",
    "partition key: customer#{d6}#order#{d9}",
    "secretName: checkout-api-tls-{d4}-production-cluster",
    "secretKeyRef: name: payments-db-credentials-v{d1}",
    "tokenEndpoint: https://login.example.com/oauth2/v2.0/token",
    "auth_provider: com.acme.security.OAuth2TokenProviderV{d1}",
    "password_hash: $2b$12${A53}",
    "bearer tokens expire after {d4} seconds",
    "public API key id {d6} belongs to the test account",
    "!function(e,t){{{{var n=e.k{d1},r=t.q{d2};n.push(r.a{d1}b{d1}c{d1})}}}}(a,b)",
    "var t=e[4],n=Math.floor(a*b/3),i=s.charCodeAt(o+{d1})^r;",
    "version 2026.03.01-rc{d1}+build.{d6}.{h7}",
    "session 2026-03-01T12-00-00-{h8} has {d3} turns",
    "The token bucket refills at {d3}/s; key size is {d4} bits.",
    "request id: req_{A24}",
    "message id <{h16}.{h12}@mail.example.com>",
    "x-request-id: {h32}, x-amz-id-2: {b52}=",
    "ISBN 978{d10}, order {d12}, phone +49{d10}",
    "test_that_the_token_is_refreshed_before_{d2}_seconds_pass",
    "model: claude-opus-4-5-2025{d4}, embedding text-embedding-3-large",
    "locale keys: settings.security.twoFactor.enterCode{d1}",
    "nonce-{b22}== in the content security policy",
    "Layer {h12} already exists, digest {h64}",
    "blob {h40} is dangling; tree {h40}",
    "cursor: eyJpZCI6{d6}fQ==",
    "Color tokens: --color-primary-500: #{h6}; --token-shadow-2xl: 0 25px 50px",
)
"""Shapes of lines without a secret."""


def decoy_lines(seed: int = 37, each: int = 6) -> Iterator[VendorLine]:
    chance = random.Random(seed)
    for _ in range(each):
        for shape in DECOYS:
            text = fill_shape(shape, chance).replace("{{", "{").replace("}}", "}")
            yield VendorLine("nothing", shape[:24], text)
    for _ in range(each * 10):
        yield VendorLine("nothing", "minified", _minified(chance))


def _minified(chance: random.Random) -> str:
    def name() -> str:
        return "".join(chance.choices(string.ascii_letters, k=chance.randint(1, 2)))

    parts = [f"{name()}.{name()}({name()},{chance.randint(0, 99)})" for _ in range(12)]
    return "var " + ";".join(parts) + f";function {name()}({name()}){{return {name()}[{name()}]}}"
