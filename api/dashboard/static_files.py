"""The pages' own CSS and JavaScript and what they stand on, read once and kept for ever by browsers."""

from __future__ import annotations

import mimetypes
from functools import cache

from fastapi import APIRouter
from starlette.responses import Response

from api.dashboard.pages import STATIC, PageRoute
from compaction.errors import NotFound

router = APIRouter(route_class=PageRoute, include_in_schema=False)

FOR_EVER = "public, max-age=31536000, immutable"  # the address holds a mark of the contents
SERVED = {".css", ".js", ".svg"}


@router.get("/dashboard/static/{name:path}")
async def static(name: str) -> Response:
    """One file."""
    found = _files().get(name)
    if found is None:
        raise NotFound("There is no such file. Reload the page: it may be of another version.")
    content, media = found
    return Response(content, media_type=media, headers={"Cache-Control": FOR_EVER})


@cache
def _files() -> dict[str, tuple[bytes, str]]:
    paths = [path for path in STATIC.rglob("*") if path.suffix in SERVED]
    return {
        path.relative_to(STATIC).as_posix(): (path.read_bytes(), mimetypes.guess_type(path.name)[0] or "text/plain")
        for path in paths
    }
