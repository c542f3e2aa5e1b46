"""Who may read: with tokens, the API needs one with the scope `read`, and `forget` to erase; the rest stays open.

The rule this file keeps: the token of one tenant shows no session of another. Rates and means are those of the whole
pipeline, and every reader may see them; any other page is for such tokens only if it names their tenant.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.typedefs import Middleware

from pipeline.serve.forgetting import PATH as FORGET
from pipeline.tokens import NotAdmitted, Scope, Tokens

API = "/api/"
OF_ALL_TENANTS = frozenset({"/api/rates", "/api/means", "/api/changes", "/api/restatements", "/api/health"})


def guard(tokens: Tokens) -> Middleware:
    """Refuses, as JSON, whoever may not read what is asked for."""

    @web.middleware
    async def guarded(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if not request.path.startswith(API):
            return await handler(request)
        try:
            erases = request.path.startswith(FORGET)
            scope = Scope.FORGET if erases else Scope.READ
            tenant = tokens.admit(request.headers.get("Authorization", ""), scope).tenant
            if erases:  # the body says whose
                return await handler(request)
            asked = request.match_info.get("tenant", request.query.get("tenant"))
            if tenant is not None and request.path not in OF_ALL_TENANTS and asked != tenant:
                raise NotAdmitted(
                    403, f"the token may read sessions of the tenant {tenant} alone: ask with tenant={tenant}"
                )
        except NotAdmitted as refused:
            headers = {"WWW-Authenticate": "Bearer"} if refused.status == 401 else {}
            return web.json_response({"error": refused.message}, status=refused.status, headers=headers)
        return await handler(request)

    return guarded
