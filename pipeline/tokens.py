"""Who may do what: bearer tokens from a TOML file, read by gateway and workers alike.

    [[token]]
    name = "shop agents"                 # for messages; never the token itself
    sha256 = "9f86d081884c7d65..."       # of the token; or `token = "..."` in plain, 16 characters or more
    scopes = ["spans", "outcomes"]       # of: spans, outcomes, read, forget
    tenant = "acme"                      # "*": senders name their tenants, readers see all
    sources = ["billing"]                # the outcome sources that it may speak for; needed for `outcomes`

The rule this file keeps: a token is compared by its digest in constant time, and is never logged or told.
"""

from __future__ import annotations

import hmac
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pipeline.core.ids import normalise_id
from pipeline.errors import TrueupError

SHORTEST = 16
ANY_TENANT = "*"


class Scope(StrEnum):
    SPANS = "spans"
    OUTCOMES = "outcomes"
    READ = "read"
    FORGET = "forget"


class BadTokens(TrueupError):
    """The file of tokens cannot be used."""


class NotAdmitted(Exception):
    """Args:
    status: 401 where no valid token was shown, 403 where it may not do this.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


@dataclass(frozen=True, slots=True)
class Token:
    """What the holder of a token may do.

    Args:
        tenant: all that it sends and reads is this tenant's; None: any tenant's.
        sources: the outcome sources that it may speak for; None: any.
    """

    name: str
    scopes: frozenset[Scope]
    tenant: str | None
    sources: frozenset[str] | None


class Tokens:
    """The tokens of a file, by the SHA-256 of each."""

    def __init__(self, tokens: list[tuple[bytes, Token]]) -> None:
        self._tokens = tokens

    @property
    def agent_sources(self) -> frozenset[tuple[str | None, str]]:
        """The sources of outcomes whose token may also send spans: agents speak there of themselves (RULES.md 40a).

        Returns:
            Tenant (None: any) and source.
        """
        own = (token for _, token in self._tokens if Scope.SPANS in token.scopes)
        return frozenset((token.tenant, source) for token in own for source in token.sources or ())

    def admit(self, authorization: str, scope: Scope) -> Token:
        """The token of an `Authorization` header.

        Raises:
            NotAdmitted: there is no valid one, or it has not the scope.
        """
        scheme, _, given = authorization.partition(" ")
        digest = sha256(given.strip().encode("utf-8", "replace")).digest()
        found = [token for known, token in self._tokens if hmac.compare_digest(digest, known)]
        if scheme.lower() != "bearer" or not found:
            raise NotAdmitted(401, "a valid bearer token is needed: Authorization: Bearer <token>")
        token = found[0]
        if scope not in token.scopes:
            raise NotAdmitted(403, f"the token {token.name!r} has not the scope {scope}")
        return token


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = ""
    token: Annotated[str, Field(min_length=SHORTEST)] | None = None
    sha256: Annotated[str, Field(pattern="^[0-9a-fA-F]{64}$")] | None = None
    scopes: Annotated[frozenset[Scope], Field(min_length=1)]
    tenant: str
    sources: frozenset[Annotated[str, Field(min_length=1)]] = frozenset()

    @model_validator(mode="after")
    def _whole(self) -> _Entry:
        if (self.token is None) == (self.sha256 is None):
            raise ValueError("exactly one of token and sha256 is needed")
        if normalise_id(self.tenant) != self.tenant or not self.tenant:
            raise ValueError(f'tenant {self.tenant!r} is no tenant; name one, or "*" for any')
        if (Scope.OUTCOMES in self.scopes) != bool(self.sources):
            raise ValueError("the scope outcomes and `sources`, whom it speaks for, go together")
        return self


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    token: Annotated[tuple[_Entry, ...], Field(min_length=1)]


def load(path: Path) -> Tokens:
    """The tokens of a file.

    Raises:
        BadTokens: with the first thing that is wrong.
    """
    try:
        entries = _File.model_validate(tomllib.loads(path.read_text("utf-8"))).token
    except OSError as error:
        raise BadTokens(f"the tokens in {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        # Without the cause, whose text may show a part of the file.
        raise BadTokens(f"{path}: is no TOML; write [[token]] tables, see docs/privacy.md") from None
    except ValidationError as error:
        raise BadTokens(f"{path}: {_first(error)}") from None
    tokens: list[tuple[bytes, Token]] = []
    for number, entry in enumerate(entries, 1):
        digest = sha256(entry.token.encode()).digest() if entry.token else bytes.fromhex(entry.sha256 or "")
        if digest in dict(tokens):
            raise BadTokens(f"{path}: token {number} is there twice; give each holder a token of its own")
        tenant = None if entry.tenant == ANY_TENANT else entry.tenant
        tokens.append((digest, Token(entry.name or f"token {number}", entry.scopes, tenant, entry.sources)))
    return Tokens(tokens)


def _first(error: ValidationError) -> str:
    """What is wrong first, and where, without the value, which may be a token."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = [f"token {part + 1}" if isinstance(part, int) else part for part in first["loc"]]
    return f"{': '.join(where)}: {first['msg'].removeprefix('Value error, ')}; see docs/privacy.md"
