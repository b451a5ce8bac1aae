"""The rules that find secrets: a format for each issuer, and secrets that only the words around them reveal.

Counts in patterns are the shortest that the issuer gives out, with no upper end: a long count costs the
engine states, and longer keys are keys too. What a pattern finds must also pass `values.is_likely_secret`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NewType, TypeAlias

SecretRuleId = NewType("SecretRuleId", str)
SecretKind: TypeAlias = Literal["format", "key", "password", "url", "stated", "random"]
"""How a value is judged: by its shape alone, or by what is said to be one: a key, a password, one in a URL,
one in a sentence, one that only stands beside the word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretRule:
    id: SecretRuleId
    name: str
    hints: tuple[str, ...]
    """One of these stands in every match; case does not count. What begins with `[` is a pattern."""
    pattern: str
    """Group 1 is the value."""
    kind: SecretKind


def _format(id_: str, name: str, hints: str, pattern: str, kind: SecretKind = "format") -> SecretRule:
    value = pattern if "(?P<value>" in pattern else f"({pattern})"
    return SecretRule(id=SecretRuleId(id_), name=name, hints=tuple(hints.split()), pattern=value, kind=kind)


_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

_CLOUD = (
    _format("aws-access-key", "AWS access key id", "AKIA ASIA ABIA ACCA", "A(?:[KS]I|BI|CC)A[A-Z0-9]{16}"),
    _format(
        "aws-secret-key",
        "AWS secret access key",
        "secret",
        "(?i:secret[_ -]?(?:access[_ -]?)?key(?:[_ -]?id)?)"
        "[^A-Za-z0-9/+\n]{1,8}(?:is )?[\"'`]?(?P<value>[A-Za-z0-9/+]{40})",
    ),
    _format("aws-bedrock-key", "Amazon Bedrock API key", "ABSK", "ABSK[A-Za-z0-9+/]{64,}={0,2}"),
    _format(
        "aws-session-token",
        "AWS session token",
        "IQoJb3JpZ2lu FwoGZXIvYXdz FQoGZXIvYXdz FQoDYXdz",
        "(?:IQoJb3JpZ2luX2Vj|F[wQ]oGZXIvYXdz|FQoDYXdz)[A-Za-z0-9+/%_-]{80,}={0,2}",
    ),
    _format("firebase-key", "Firebase messaging key", "AAAA", "AAAA[A-Za-z0-9_-]{7}:[A-Za-z0-9_-]{130,}"),
    _format("google-api-key", "Google API key", "AIza", "AIza[A-Za-z0-9_-]{35}"),
    _format("google-client-secret", "Google OAuth client secret", "GOCSPX-", "GOCSPX-[A-Za-z0-9_-]{28}"),
    _format("google-access-token", "Google OAuth access token", "ya29.", r"ya29\.[A-Za-z0-9_-]{30,}"),
    _format("google-refresh-token", "Google OAuth refresh token", "1//0", "1//0[A-Za-z0-9_-]{38,}"),
    _format(
        "azure-account-key",
        "Azure account key",
        "AccountKey",
        "AccountKey=(?P<value>[A-Za-z0-9+/]{80,}={0,2})",
    ),
    _format(
        "azure-shared-access-key",
        "Azure shared access key",
        "SharedAccessKey",
        "SharedAccessKey=(?P<value>[A-Za-z0-9+/]{40,}={0,2})",
    ),
    _format(
        "azure-client-secret", "Azure client secret", "Q~", "[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,}"
    ),
    _format("azure-sas", "Azure shared access signature", "sig=", "[?&;]sig=(?P<value>[A-Za-z0-9+/%]{43,})"),
    _format("azure-key", "Azure resource key", "JQQJ99", "[A-Za-z0-9]{40,}JQQJ99[A-Za-z0-9]{20,}"),
    _format("azure-devops-token", "Azure DevOps token", "AZDO", "[A-Za-z0-9]{60,}AZDO[A-Za-z0-9]{4}"),
    _format("alibaba-access-key", "Alibaba Cloud access key id", "LTAI", "LTAI[A-Za-z0-9]{12,20}"),
    _format("cloudflare-key", "Cloudflare origin CA key", "v1.0-", r"v1\.0-[a-f0-9]{24}-[a-f0-9]{100,}"),
    _format("databricks-token", "Databricks token", "dapi", "dapi[a-f0-9]{32}"),
    _format("digitalocean-token", "DigitalOcean token", "_v1_", "do[opr]_v1_[a-f0-9]{64}"),
    _format("doppler-token", "Doppler token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{40,}"),
    _format(
        "fly-token",
        "Fly.io token",
        "fm2_ fm1 fo1_",
        "(?:fm(?:2_|1[ar]_)[A-Za-z0-9+/_-]{60,}={0,2}|fo1_[A-Za-z0-9_-]{43})",
    ),
    _format("hashicorp-vault-token", "Vault token", "hvs. hvb. hvr.", r"hv[sbr]\.[A-Za-z0-9_-]{24,}"),
    _format("old-vault-token", "Vault token", "s. b. r.", r"\b[sbr]\.(?P<value>[A-Za-z0-9]{24})\b", "key"),
    _format("heroku-key", "Heroku API key", "HRKU-", "HRKU-[A-Za-z0-9_-]{36,}"),
    _format("netlify-token", "Netlify token", "nfp_", "nfp_[A-Za-z0-9]{36,}"),
    _format("planetscale-token", "PlanetScale token", "pscale_", r"pscale_[a-z]{2,5}_[A-Za-z0-9=._-]{32,}"),
    _format("pulumi-token", "Pulumi token", "pul-", "pul-[a-f0-9]{40}"),
    _format(
        "supabase-key", "Supabase key", "sbp_ sb_secret_", "(?:sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{30,})"
    ),
    _format("tailscale-key", "Tailscale key", "tskey-", "tskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{20,}"),
    _format(
        "terraform-token", "Terraform token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}"
    ),
    _format("vercel-token", "Vercel token", "vcp_ vci_ vca_ vcr_ vck_", "vc[piark]_[A-Za-z0-9]{24,}"),
)

_FORGES = (
    _format("github-token", "GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", "gh[pousr]_[A-Za-z0-9]{36,}"),
    _format("github-fine-grained", "GitHub token", "github_pat_", "github_pat_[A-Za-z0-9_]{60,}"),
    _format(
        "gitlab-token",
        "GitLab token",
        "glpat- glptt- gldt- glrt- glrtr- glcbt- glft- glsoat- glimt- glagent- gloas- glffct-",
        "gl(?:pat|ptt|dt|rtr?|cbt|ft|soat|imt|agent|oas|ffct)-[A-Za-z0-9_.-]{20,}",
    ),
    _format("gitlab-runner", "GitLab runner registration token", "GR1348941", "GR1348941[A-Za-z0-9_-]{20,}"),
    _format(
        "atlassian-token", "Atlassian or Bitbucket token", "ATATT3 ATCTT3", "AT(?:A|C)TT3[A-Za-z0-9_=-]{60,}"
    ),
    _format("bitbucket-password", "Bitbucket app password", "ATBB", "ATBB[A-Za-z0-9_=.-]{24,}"),
    _format("npm-token", "npm token", "npm_", "npm_[A-Za-z0-9]{36}"),
    _format(
        "npm-auth",
        "npm registry token",
        "_authToken",
        "_authToken ?= ?[\"']?(?P<value>[A-Za-z0-9+/_=-]{32,})",
    ),
    _format("pypi-token", "PyPI token", "pypi-AgE", "pypi-AgE[A-Za-z0-9_-]{50,}"),
    _format("rubygems-key", "RubyGems key", "rubygems_", "rubygems_[a-f0-9]{48}"),
    _format("crates-token", "crates.io token", "cio", "cio[A-Za-z0-9]{32}"),
    _format("nuget-key", "NuGet key", "oy2", "oy2[a-z0-9]{43}"),
    _format("docker-token", "Docker Hub token", "dckr_pat_ dckr_oat_", "dckr_[po]at_[A-Za-z0-9_-]{27,}"),
    _format("artifactory-key", "Artifactory key", "AKCp cmVmdGtu", "(?:AKCp|cmVmdGtu)[A-Za-z0-9]{56,}"),
    _format(
        "circleci-token", "CircleCI token", "CCIPAT_ CCIPRJ_", "CCIP(?:AT|RJ)_[A-Za-z0-9]{22}_[a-f0-9]{40}"
    ),
    _format("buildkite-token", "Buildkite token", "bkua_", "bkua_[a-f0-9]{40}"),
    _format("sonar-token", "Sonar token", "squ_ sqa_ sqp_", "sq[uap]_[a-f0-9]{40}"),
)

_MODELS = (
    _format("anthropic-key", "Anthropic key", "sk-ant-", "sk-ant-[a-z]{2,8}[0-9]{2}-[A-Za-z0-9_-]{40,}"),
    _format(
        "openai-key",
        "OpenAI key",
        "sk-proj- sk-svcacct- sk-admin- T3BlbkFJ",
        "sk-(?:(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,}|[A-Za-z0-9_-]{16,}T3BlbkFJ[A-Za-z0-9_-]{16,})",
    ),
    _format("sk-key", "Key of an OpenAI-like service", "sk-", "sk-(?:or-v1-|lf-)?[A-Za-z0-9]{32,}"),
    _format("langfuse-key", "Langfuse secret key", "sk-lf-", f"sk-lf-{_UUID}"),
    _format("langsmith-key", "LangSmith key", "lsv2_", "lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    _format("huggingface-token", "Hugging Face token", "hf_ api_org_", "(?:hf|api_org)_[A-Za-z0-9]{34}"),
    _format("groq-key", "Groq key", "gsk_", "gsk_[A-Za-z0-9]{48,}"),
    _format("xai-key", "xAI key", "xai-", "xai-[A-Za-z0-9]{60,}"),
    _format("perplexity-key", "Perplexity key", "pplx-", "pplx-[A-Za-z0-9]{40,}"),
    _format("replicate-token", "Replicate token", "r8_", "r8_[A-Za-z0-9]{37}"),
    _format("cerebras-key", "Cerebras key", "csk-", "csk-[a-z0-9]{40,}"),
    _format("nvidia-key", "NVIDIA key", "nvapi-", "nvapi-[A-Za-z0-9_-]{60,}"),
    _format("pinecone-key", "Pinecone key", "pcsk_", "pcsk_[A-Za-z0-9]{5,7}_[A-Za-z0-9]{48,}"),
    _format("tavily-key", "Tavily key", "tvly-", "tvly-[A-Za-z0-9-]{28,}"),
    _format("together-key", "Together key", "tgp_v1_", "tgp_v1_[A-Za-z0-9_-]{40,}"),
    _format("elevenlabs-key", "ElevenLabs key", "sk_", "sk_[a-f0-9]{48}"),
    _format("e2b-key", "E2B key", "e2b_", "e2b_[a-f0-9]{40}"),
)

_CHAT = (
    _format("slack-token", "Slack token", "xox", "xox[abceoprs](?:[.-][A-Za-z0-9]+)*-[A-Za-z0-9-]{20,}"),
    _format("slack-app-token", "Slack app token", "xapp-", "xapp-[0-9]-[A-Za-z0-9]+-[0-9]+-[a-f0-9]{40,}"),
    _format(
        "slack-webhook",
        "Slack webhook",
        "hooks.slack.com",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9]+/[A-Za-z0-9]+/(?P<value>[A-Za-z0-9/]{20,})",
    ),
    _format(
        "discord-bot",
        "Discord bot token",
        ".",
        r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
    ),
    _format(
        "discord-webhook",
        "Discord webhook",
        "/api/webhooks/",
        r"discord(?:app)?\.com/api/webhooks/[0-9]{16,20}/(?P<value>[A-Za-z0-9_-]{40,})",
    ),
    _format("telegram-bot", "Telegram bot token", ":AA", "[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"),
    _format(
        "teams-webhook",
        "Microsoft Teams webhook",
        "webhook.office.com",
        rf"webhook\.office\.com/webhookb2/{_UUID}@\S{{40,}}",
    ),
    _format("twilio-key", "Twilio key", "SK", "SK[a-f0-9]{32}"),
    _format("sendgrid-key", "SendGrid key", "SG.", r"SG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{39,}"),
    _format("mailgun-key", "Mailgun key", "key-", "key-[a-f0-9]{32}"),
    _format("mailchimp-key", "Mailchimp key", "-us", "[a-f0-9]{32}-us[0-9]{1,2}"),
    _format("brevo-key", "Brevo key", "xkeysib-", "xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    _format("resend-key", "Resend key", "re_", "re_[A-Za-z0-9]{7,10}_[A-Za-z0-9]{20,}"),
)

_PAYMENT = (
    _format(
        "stripe-key", "Stripe or Paystack secret key", "_live_ _test_", "[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"
    ),
    _format("stripe-webhook", "Webhook signing secret", "whsec_", "whsec_[A-Za-z0-9+/]{24,}={0,2}"),
    _format(
        "paypal-token",
        "PayPal or Braintree token",
        "access_token$",
        r"access_token\$[a-z]+\$[a-z0-9]{16}\$[a-f0-9]{32}",
    ),
    _format(
        "paypal-secret",
        "PayPal client secret",
        "paypal",
        r"(?i:paypal)[^\n]{1,60}[^A-Za-z0-9_-](?P<value>E[A-Za-z0-9_-]{79})",
    ),
    _format(
        "square-token",
        "Square token",
        "sq0atp- sq0csp- EAAA",
        "(?:sq0(?:atp|csp)-[A-Za-z0-9_-]{22,}|EAAA[A-Za-z0-9_-]{60})",
    ),
    _format(
        "shopify-token", "Shopify token", "shpat_ shpca_ shppa_ shpss_", "shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}"
    ),
    _format(
        "plaid-token", "Plaid access token", "access-", f"access-(?:sandbox|development|production)-{_UUID}"
    ),
    _format("flutterwave-key", "Flutterwave key", "FLWSECK", "FLWSECK(?:_TEST)?-[a-f0-9]{32}-X"),
    _format("razorpay-key", "Razorpay key id", "rzp_", "rzp_(?:live|test)_[A-Za-z0-9]{14,}"),
)

_TOOLS = (
    _format(
        "private-key",
        "Private key",
        "PRIVATE",
        (
            r"BEGIN\s*(?:[A-Z0-9]+\s*){0,3}PRIVATE\s*KEY(?: BLOCK)?-----"
            # Lines that say how it was encrypted, and one that was broken; or line ends that were escaped.
            r"(?:(?:[^\n]{0,80}\n\s*){0,6}|(?:\s|\\[nr]|[\"'+,])*)(?P<value>[A-Za-z0-9+/=]{24,})"
        ),
    ),
    _format(
        "putty-key",
        "PuTTY private key",
        "Private-Lines",
        r"Private-Lines: [0-9]+\s+(?P<value>[A-Za-z0-9+/=]{24,})",
    ),
    _format("age-key", "age private key", "AGE-SECRET-KEY-1", "AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    _format(
        "jwt", "JSON web token", "eyJ", r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}"
    ),
    _format("onepassword-token", "1Password service token", "ops_eyJ", "ops_eyJ[A-Za-z0-9+/_=-]{100,}"),
    _format("onepassword-key", "1Password secret key", "A3-", "A3-[A-Z0-9]{6}(?:-?[A-Z0-9]{5,6}){5}"),
    _format(
        "jwk", "Private JSON web key", '"kty"', r"\"[dk]\"\s{0,4}:\s{0,4}\"(?P<value>[A-Za-z0-9_-]{32,})\""
    ),
    _format(
        "otp-secret",
        "Secret of one-time passwords",
        "otpauth://",
        r"otpauth://[^\s\"'`<>]{0,200}[?&]secret=(?P<value>[A-Za-z2-7]{16,})",
    ),
    _format(
        "grafana-token",
        "Grafana token",
        "glc_ glsa_",
        "(?:glc_[A-Za-z0-9+/]{32,}={0,2}|glsa_[A-Za-z0-9]{32}_[a-f0-9]{8})",
    ),
    _format(
        "newrelic-key",
        "New Relic key",
        "NRAK- NRAL NRII- NRIQ- NRRA- NRAA-",
        "(?:NRAK-[A-Z0-9]{27}|[a-f0-9]{36}NRAL|NR(?:II|IQ|RA|AA)-[A-Za-z0-9_-]{24,})",
    ),
    _format(
        "snyk-token",
        "Snyk token",
        "snyk",
        rf"(?i:snyk)(?:_[us]at\.|(?s:.){{0,60}}?[^A-Za-z0-9-])(?P<value>{_UUID}|[a-z0-9]{{8}}\.[A-Za-z0-9_.-]{{20,}})",
        "key",
    ),
    _format(
        "sidekiq-license",
        "Sidekiq licence",
        "sidekiq contribsys",
        r"(?i:sidekiq|contribsys)(?s:.){0,40}?[^A-Za-z0-9](?P<value>[a-f0-9]{8}:[a-f0-9]{8})",
        "key",
    ),
    _format(
        "sumologic-key",
        "Sumo Logic access key or collector",
        "sumo",
        r"(?i:sumo)(?s:.){0,60}?[^A-Za-z0-9](?:receiver/v1/http/)?(?P<value>[A-Za-z0-9]{64}|[A-Za-z0-9+/_-]{80,}={0,2})",
        "key",
    ),
    _format(
        "sumologic-id",
        "Sumo Logic access id",
        "sumo",
        "(?i:sumo)(?s:.){0,60}?[^A-Za-z0-9](?P<value>su[A-Za-z0-9]{12})(?:[^A-Za-z0-9]|$)",
        "stated",
    ),
    _format("posthog-key", "PostHog key", "phc_ phx_ phs_", "ph[cxs]_[A-Za-z0-9]{32,}"),
    _format("clojars-token", "Clojars token", "CLOJARS_", "(?i:CLOJARS_)[a-z0-9]{60}"),
    _format("render-key", "Render key", "rnd_", "rnd_[A-Za-z0-9]{24,}"),
    _format("sourcegraph-token", "Sourcegraph token", "sgp_", "sgp_(?:(?:[a-f0-9]{16}|local)_)?[a-f0-9]{40}"),
    _format("sentry-token", "Sentry token", "sntrys_ sntryu_", "sntry[su]_[A-Za-z0-9+/=_-]{40,}"),
    _format("dynatrace-token", "Dynatrace token", "dt0", r"dt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    _format("postman-key", "Postman key", "PMAK-", "PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    _format("linear-key", "Linear key", "lin_api_ lin_oauth_", "lin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    _format(
        "notion-token", "Notion token", "ntn_ secret_", "(?:ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43})"
    ),
    _format("airtable-token", "Airtable token", "pat", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    _format("figma-token", "Figma token", "figd_ figo_", "fig[do]_[A-Za-z0-9_-]{36,}"),
    _format("hubspot-token", "HubSpot token", "pat-na pat-eu", f"pat-(?:na|eu)[0-9]-{_UUID}"),
    _format("launchdarkly-key", "LaunchDarkly key", "sdk- api- mob-", f"(?:sdk|api|mob)-{_UUID}"),
    _format("contentful-token", "Contentful token", "CFPAT-", "CFPAT-[A-Za-z0-9_-]{40,}"),
    _format("dropbox-token", "Dropbox token", "sl.", r"sl\.(?:u\.)?[A-Za-z0-9_-]{100,}"),
    _format("facebook-token", "Facebook token", "EAA", "EAA(?:CEdEose0cBA[A-Za-z0-9]{10,}|[A-Za-z0-9]{90,})"),
    _format("facebook-app-token", "Facebook app token", "|", r"[0-9]{13,17}\|[A-Za-z0-9_-]{26,28}", "key"),
    _format("twitter-bearer", "X bearer token", "AAAAAAAAAAAAAAAAAAAA", "A{20,}[A-Za-z0-9%]{60,}"),
    _format("mapbox-token", "Mapbox secret token", "sk.eyJ", r"sk\.eyJ[A-Za-z0-9_-]{20,}\.[\w-]{16,}"),
    _format(
        "harness-token", "Harness token", "pat. sat.", r"[ps]at\.[\w-]{22}\.[a-f0-9]{24}\.[A-Za-z0-9]{20}"
    ),
    _format("laravel-key", "Laravel application key", "base64:", "base64:(?P<value>[A-Za-z0-9+/]{43}=)"),
    _format(
        "documented-key",
        "Key of a documented format",
        "shippo_ shptka_ fc- signkey- cs_ avns_ xaat- xapt- sec-c- nsec1 k00 [0-9a-f]{8}[-:][0-9a-f]{8}",
        r"(?:\b(?:shippo_(?:live|test)_|shptka_|fc-|signkey-[a-z]+-|cs_)[a-f0-9]{32,}|AVNS_[A-Za-z0-9_-]{19,}"
        rf"|xa[ap]t-{_UUID}|sec-c-[A-Za-z0-9+/=-]{{40,}}|nsec1[02-9ac-hj-np-z]{{58}}"
        r"|K00[0-9][A-Za-z0-9/+]{27}|\b[a-f0-9]{32}-[a-f0-9]{8}-[a-f0-9]{8}\b|\b[a-f0-9]{24}:[a-f0-9]{64}\b)",
    ),
)

_OWN = (
    _format(
        "sevenfold-token",
        "Sevenfold team token",
        "sfm_",
        # The random part alone is judged: an organisation may be called `example`.
        "sfm_[a-z0-9]{1,40}_(?P<value>[A-Za-z0-9_-]{43,})",
    ),
    _format(
        "sevenfold-device-code",
        "Sevenfold device code",
        "device",
        "(?i:device[_ -]?code)[^A-Za-z0-9_\n-]{1,8}(?:is )?[\"'`]?(?P<value>[A-Za-z0-9_-]{43,})",
    ),
    _format(
        "sevenfold-fingerprint-key",
        "Sevenfold fingerprint key",
        "allowances",
        r"\"key\"\s{0,4}:\s{0,4}\"(?P<value>[0-9a-f]{64})\"\s{0,4},\s{0,4}\"allowances\"",
    ),
)
"""What Sevenfold itself hands out, and the key with which it names findings."""

FORMAT_RULES: tuple[SecretRule, ...] = (*_OWN, *_TOOLS, *_CLOUD, *_FORGES, *_MODELS, *_CHAT, *_PAYMENT)

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
_STATED = r"(?P<value>[^\s\"'`,;<>|]*(?:[0-9!@#$%^&*?~+]|[a-z][A-Z]|[A-Z][A-Z])[^\s\"'`,;<>|]*)"
"""A password in a sentence has something in it that the words of the sentence have not."""

_RANDOM = "(?P<value>[A-Za-z0-9!@#$%^&*?~+_.-]{7,})"

_GENERIC = (
    _format(
        "url-password",
        "Password in a URL",
        "://",
        r"[A-Za-z][A-Za-z0-9+.-]*://[^\s:@/\"'`<>]*:(?P<value>[^\s@/\"'`<>]{3,})@[A-Za-z0-9.\[-]",
        "url",
    ),
    _format(
        "connection-string",
        "Password in a connection string",
        "pwd password",
        r"(?i:(?:server|host|data source)=[^;\n]{1,100};(?:[^;\n]{0,100};){0,6}(?:pwd|password)=)"
        r"(?P<value>[^;\s\"'`<>]{6,})",
        "url",
    ),
    _format(
        "authorization-header",
        "Authorization header",
        "bearer authorization",
        r"(?i:authorization[\"'`]?\s?[:=]\s?[\"'`]?(?:[a-z]{3,12} )?|\bbearer )"
        r"(?P<value>[A-Za-z0-9+/=_.~-]{16,})",
        "key",
    ),
    _format(
        "key-assignment",
        "Value named as a key, token or secret",
        "key secret token credential bearer",
        rf"(?i:{_NAME}){_GIVEN}{_QUOTES}(?P<value>[^\s\"'`,;<>(){{}}\[\]|*]{{16,}})",
        "key",
    ),
    _format(
        "secret-assignment",
        "Value named as a key, token or secret",
        "key secret token credential auth",
        rf"(?:^|[^?&])(?i:\b{_NAME}|_{_NAME}|\bauth|\bkey){_GIVEN}[\"'`]?"
        r"(?P<value>[^\s\"'`,;<>|]{8,15})(?:[\s\"'`,;]|$)",
        "random",
    ),
    _format(
        "password-assignment",
        "Value named as a password",
        "pass pwd kennwort",
        rf"(?i:{_PASS})[A-Za-z0-9_.-]*{_GIVEN}{_QUOTES}(?P<value>[^\s\"'`,;<>|]{{6,}})",
        "password",
    ),
    _format(
        "password-literal",
        "Value named as a password",
        "pass pw auth",
        r"(?i:(?:\b|_)(?:pass|pw|pswd)\s{0,4}:?=\s{0,4}|\bauth\s?=\s?\([\"'][^\"'\n]{1,40}[\"'],\s?"
        r"|set_?password\()[\"'](?P<value>[^\s\"'`]{6,})[\"']",
        "password",
    ),
    _format(
        "password-option",
        "Password on a command line",
        "-pass -u --user sshpass SecureString",
        r"(?:(?i:--?pass(?:word|wd|phrase)?[= :])|ConvertTo-SecureString (?:-String )?|sshpass -p ?"
        r"|(?:-u|--user) [\"']?[A-Za-z0-9_.@-]+:)[\"']?(?P<value>[^\s\"'`,;<>|]{6,})",
        "password",
    ),
    _format(
        "password-beside",
        "Password beside its name",
        "pw pass 비번 비밀번호 패스워드 암호",
        rf"(?:(?:\b|_)(?i:pw|pswd|pass|{_PASS})|비번|패스워드|암호|비밀번호)[\"'`)]{{0,2}}"
        rf"(?:\s?[:=(/-]\s?| )[\"'`(]?(?:[A-Za-z0-9._@-]+\s?[/:]\s?)?{_RANDOM}",
        "random",
    ),
    _format(
        "password-pair",
        "Name and password of a host",
        "/",
        rf"\b[0-9]+(?:\.[0-9]{{1,3}}){{3}}[^\n/]{{0,24}}[ (>-][A-Za-z][A-Za-z0-9._-]{{1,20}}/{_RANDOM}",
        "random",
    ),
    _format(
        "secret-element",
        "Secret in an XML element",
        "pass pw secret token key",
        r"(?i:<[A-Za-z0-9_:.-]{0,30}(?:pass(?:word|wd|phrase)?|pwd|pw|secret|token|key)>)\s{0,20}"
        r"(?P<value>[^<\s]{6,})\s{0,20}</",
        "password",
    ),
    _format(
        "secret-default",
        "Secret as a default value",
        "env get( or",
        r"(?i:get(?:env)?\(\s?[^,()\n]{0,40}(?:pass|pwd|pw|secret|token|key|cred)[^,()\n]{0,20},\s?"
        r"|(?:pass|pwd|secret|token|key|cred)[^\n]{0,60}\) or )b?\\{0,2}[\"'](?P<value>[^\s\"'`]{6,})",
        "password",
    ),
    _format(
        "secret-before-its-name",
        "Password in a sentence",
        "pass pwd pw secret token key",
        r"(?P<value>[^\s\"'`,;<>|]{7,})[\"'`]? (?:is|was) (?:the|my|our) "
        r"(?:[A-Za-z]+ )?(?:pass(?:word|wd|phrase)|pwd|pw|secret|token|key)\b",
        "random",
    ),
    _format(
        "password-in-prose",
        "Password in a sentence",
        "pass kennwort pwd contrase senha wachtwoord пароль 密码 口令 パスワード 비밀번호",
        rf"(?:^|[^$])(?i:{_WORDS})[^\n]{{0,40}}?{_LINKS}\s{{0,3}}{_QUOTES}{_STATED}",
        "stated",
    ),
    _format(
        "password-with",
        "Password in a sentence",
        "pass pwd kennwort log sign",
        rf"(?i:(?:with|using|and|mit|avec|con)(?: the| dem)? (?:{_WORDS})"
        rf"|(?:log ?in|logged in|sign ?in)[^\n]{{1,60}}? with) {_QUOTES}{_STATED}",
        "stated",
    ),
)

SECRET_RULES: tuple[SecretRule, ...] = (*FORMAT_RULES, *_GENERIC)
"""In the order in which they are asked: of two that find the same, the first one names it."""

RANDOM_RULE = _format("random-value", "Random value in a place for a key", "", "", "key")
"""Names what `values.find_random_tokens` finds; it has no pattern of its own."""
