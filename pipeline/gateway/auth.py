"""Who may send: bearer tokens from a file.

The rule this file keeps: a token is compared in constant time and is never logged or told.
"""

from __future__ import annotations

import hmac
from pathlib import Path

from aiohttp import web

from pipeline.errors import TrueupError
from pipeline.gateway.request import Authorize, Principal, Refused, Scope

SHORTEST = 16


class BadTokens(TrueupError):
    """The file of tokens cannot be used."""


def bearer_tokens(path: Path) -> Authorize:
    """Admits who brings one of the tokens of the file: one a line, `#` begins a comment line.

    Raises:
        BadTokens: the file cannot be read, holds no token, or one that is short enough to guess.
    """
    try:
        lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise BadTokens(f"the tokens in {path} cannot be read: {type(error).__name__}") from error
    tokens = [line.encode() for line in lines if line and not line.startswith("#")]
    if not tokens:
        raise BadTokens(f"{path} holds no token; write one a line")
    if any(len(token) < SHORTEST for token in tokens):
        raise BadTokens(f"a token in {path} has less than {SHORTEST} characters; make it longer")

    async def authorize(request: web.Request, _scope: Scope) -> Principal:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        sent = given.strip().encode("utf-8", "replace")
        matches = [hmac.compare_digest(sent, token) for token in tokens]
        if scheme.lower() != "bearer" or not any(matches):
            raise Refused(401, "a valid bearer token is needed: Authorization: Bearer <token>")
        return Principal(f"token {matches.index(True) + 1}")

    return authorize
