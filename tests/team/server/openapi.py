"""The OpenAPI document, made from the table of operations and the types on the wire."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias, cast

from sevenfold.core import __version__
from sevenfold.core.memories import TEAM_KEY_PATTERN
from sevenfold.team.server.operations import OPERATIONS, Operation
from sevenfold.team.server.people import NAME_PATTERN
from sevenfold.team.server.policy import ACCESS_RULES, AUDIT_LINE_ID, MEMBER_ROLES, TOKEN_SCOPES
from sevenfold.team.server.repos import REPO_NAME, REPO_REMOTE

Schema: TypeAlias = dict[str, object]

ERROR: Schema = {
    "type": "object",
    "description": "What was not done, why, and what to try. `retry`: whether the same may succeed later.",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["kind", "message", "try", "retry"],
            "properties": {
                "kind": {"type": "string"},
                "message": {"type": "string"},
                "try": {"type": "string"},
                "retry": {"type": "boolean"},
            },
        },
        "conflicts": {
            "type": "object",
            "description": "409: keys as they are now, with version and checksum.",
        },
        "seq": {"type": "integer", "description": "412: where the repository is."},
        "missing": {
            "type": "array",
            "items": {"type": "string"},
            "description": "422: bodies to send first.",
        },
        "keys": {"type": "array", "items": {"type": "string"}, "description": "422: names that are refused."},
        "secrets": {"type": "object", "description": "422: by key or checksum, rule, line and fingerprint."},
    },
}

REFUSALS: Mapping[int, str] = {
    400: "The request cannot be read.",
    401: "No token that is good here.",
    403: "The token's scopes or the member's role do not reach.",
    404: "Not there, or another organisation's.",
    408: "The body took too long to come.",
    409: "Something changed meanwhile, or is there already; nothing was done.",
    412: "The repository is not where If-Match says.",
    413: "Too large.",
    415: "A content type or encoding that is not read.",
    422: "Understood, and not possible: names, sizes, secrets, quotas.",
    429: "Too often. Retry-After says how long to wait.",
    500: "A bug in the server.",
    503: "Not now. Retry-After says how long to wait.",
}

_CHECKSUM: Schema = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
_KEY: Schema = {"type": "string", "pattern": f"^{TEAM_KEY_PATTERN.pattern}$", "maxLength": 250}

NARROWER: Mapping[tuple[str, str], Schema] = {
    ("EntriesSent", "entries"): {"minProperties": 1, "maxProperties": 1000, "propertyNames": _KEY},
    ("BodiesSent", "bodies"): {"minItems": 1},
    ("ChangeSent", "key"): _KEY,
    ("ChangeSent", "expected"): {"minimum": 0, "maximum": 2**53},
    ("ChangeSent", "checksum"): {"anyOf": [_CHECKSUM, {"type": "null"}]},
    ("CommitSent", "id"): {"minLength": 1, "maxLength": 200, "pattern": "^[ -~]+$"},
    ("CommitSent", "changes"): {"minItems": 1, "maxItems": 1000},
    ("VersionSent", "key"): _KEY,
    ("VersionSent", "version"): {"minimum": 0, "maximum": 2**53},
    ("VersionSent", "checksum"): {"anyOf": [_CHECKSUM, {"type": "null"}]},
    ("VersionsSent", "entries"): {"minItems": 1, "maxItems": 1000},
    ("ClaimSent", "name"): {"pattern": f"^{REPO_NAME.pattern}$", "maxLength": 400},
    ("ClaimSent", "remote"): {"pattern": f"^{REPO_REMOTE.pattern}$"},
    ("MemberSent", "name"): {"pattern": f"^{NAME_PATTERN.pattern}$"},
    ("MemberSent", "role"): {"enum": list(MEMBER_ROLES)},
    ("RoleSent", "role"): {"enum": list(MEMBER_ROLES)},
    ("TokenSent", "scopes"): {"minItems": 1, "items": {"type": "string", "enum": list(TOKEN_SCOPES)}},
    ("TokenSent", "days"): {"minimum": 1, "maximum": 3650},
    ("AllowanceSent", "fingerprint"): {"pattern": "^[0-9a-f]{20}$"},
    ("AllowanceSent", "reason"): {"minLength": 1, "maxLength": 500},
}
"""What the types cannot say."""


_SAID = "$response.body#"

LINKS: Mapping[str, Mapping[str, Schema]] = {
    "add_member": {
        "change": {"operationId": "change_member", "parameters": {"member": f"{_SAID}/id"}},
        "remove": {"operationId": "remove_member", "parameters": {"member": f"{_SAID}/id"}},
    },
    "add_token": {"revoke": {"operationId": "revoke_token", "parameters": {"id": f"{_SAID}/id"}}},
    "start_device": {
        "poll": {"operationId": "poll_device", "requestBody": {"device_code": f"{_SAID}/device_code"}},
    },
    "send_bodies": {
        "commit": {
            "operationId": "commit",
            "requestBody": {
                "id": f"{_SAID}/checksums/0",
                "changes": [{"key": "linked.md", "expected": 0, "checksum": f"{_SAID}/checksums/0"}],
            },
        },
        "read": {"operationId": "read_body", "parameters": {"checksum": f"{_SAID}/checksums/0"}},
    },
}
"""What an answer is good for next."""


def make_document() -> Schema:
    import msgspec

    kinds = {kind for one in OPERATIONS for kind in (one.gives, one.or_gives, one.takes) if kind is not None}
    ordered = sorted(kinds, key=lambda kind: kind.__name__)
    _, found = msgspec.json.schema_components(ordered, ref_template="#/components/schemas/{name}")
    schemas = cast("dict[str, Schema]", found)
    for (name, field), extra in NARROWER.items():
        properties = cast("dict[str, Schema]", schemas[name]["properties"])
        kept = {} if "anyOf" in extra else properties[field]
        properties[field] = {**kept, **extra}
    paths: dict[str, dict[str, object]] = {}
    for one in OPERATIONS:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Sevenfold team server",
            "version": __version__,
            "description": "One memory for a team. docs/sync-protocol.md has the rule by which it changes.",
        },
        "paths": paths,
        "components": {
            "schemas": {**dict(sorted(schemas.items())), "Error": ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(one: Operation) -> Schema:
    described: Schema = {
        "operationId": one.name,
        "summary": one.summary,
        "parameters": list(_parameters(one)),
    }
    if one.verb is not None:
        rule = ACCESS_RULES[one.verb]
        roles = ", ".join(role for role in MEMBER_ROLES if role in rule.roles)
        described["security"] = [{"token": list[str]()}]
        described["description"] = f"Right `{one.verb}`: scope {rule.scope or 'any'}; roles {roles}."
    if one.takes is not None:
        described["requestBody"] = {"required": True, "content": _json(one.takes.__name__)}
    described["responses"] = dict(_responses(one))
    return described


def _parameters(one: Operation) -> Iterator[Schema]:
    for name in one.path_params:
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
    for name, meaning in one.query.items():
        schema: Schema = {"type": "string", "minLength": 1}
        if name == "view":
            schema = {"type": "string", "enum": ["hashes"]}
        if name == "limit":
            schema = {"type": "integer", "minimum": 1, "maximum": 1000}
        if name == "before":
            schema = {"type": "string", "pattern": f"^(?:[1-9][0-9]{{0,14}}|{AUDIT_LINE_ID.pattern})$"}
        yield {
            "name": name,
            "in": "query",
            "required": name == "repo",
            "description": meaning,
            "schema": schema,
        }
    if one.conditional:
        yield {"name": one.conditional, "in": "header", "required": False, "schema": {"type": "string"}}


def _responses(one: Operation) -> Iterator[tuple[str, Schema]]:
    content: dict[str, Schema] = {"text/plain": {"schema": {"type": "string"}}}
    if one.gives is not None:
        content = _json(*(kind.__name__ for kind in (one.gives, one.or_gives) if kind is not None))
    done: Schema = {"description": one.summary, "content": content}
    if one.conditional or one.name == "commit":
        done["headers"] = {"etag": {"required": True, "schema": {"type": "string"}}}
    if one.name in LINKS:
        done["links"] = LINKS[one.name]
    yield str(one.status), done
    if one.conditional == "if-none-match":
        yield "304", {"description": "Nothing has changed.", "headers": done["headers"]}
    for status in statuses(one):
        refused: Schema = {"description": REFUSALS[status], "content": _json("Error")}
        if status in (429, 503):
            refused["headers"] = {"retry-after": {"required": True, "schema": {"type": "string"}}}
        yield str(status), refused


def statuses(one: Operation) -> list[int]:
    """Every refusal that an operation may answer with."""
    everybody = {500, 503} if one.path.count("/") == 1 else {400, 429, 500, 503}
    sent = (408, 413, 415) if one.takes else ()
    return sorted({*everybody, *one.refuses, *sent, *((401, 403) if one.verb else ())})


def _json(*names: str) -> dict[str, Schema]:
    kinds = [{"$ref": f"#/components/schemas/{name}"} for name in names]
    return {"application/json": {"schema": {"anyOf": kinds} if len(kinds) > 1 else kinds[0]}}
