"""The web server of the explorer: a page and its data, on this machine only."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hiernorm.vision.explore.explorer import MAX_NEIGHBOURS, Explorer

HOST = "127.0.0.1"
PAGE = {
    "/": ("index.html", "text/html"),
    "/favicon.svg": ("favicon.svg", "image/svg+xml"),
    "/app.js": ("app.js", "text/javascript"),
    "/plot.js": ("plot.js", "text/javascript"),
    "/results.js": ("results.js", "text/javascript"),
    "/server.js": ("server.js", "text/javascript"),
    "/stage.js": ("stage.js", "text/javascript"),
    "/style.css": ("style.css", "text/css"),
}
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


MAX_NUMBER = 2**63 - 1


class NumberConvertor(Convertor[int]):
    """A number in a path; one that no id can be is refused as such."""

    regex = "[0-9]+"

    def convert(self, value: str) -> int:
        """The number."""
        if len(value) > len(str(MAX_NUMBER)) or int(value) > MAX_NUMBER:
            raise HTTPException(400, f"a number is at most {MAX_NUMBER}, got {value[:20]}...")
        return int(value)

    def to_string(self, value: int) -> str:
        """The text of a number."""
        return str(value)


register_url_convertor("number", NumberConvertor())


def make_app(explorer: Explorer) -> Starlette:
    """The web application over a collection.

    Requests for other host names than those of this machine are refused, so that a foreign page
    cannot reach it by DNS rebinding.
    """

    async def answer(make: Callable[[], Any], media_type: str | None = None) -> Response:
        try:
            content = await run_in_threadpool(make)
        except KeyError as error:
            return JSONResponse({"error": error.args[0]}, 404, HEADERS)
        except ValueError as error:
            return JSONResponse({"error": str(error)}, 409, HEADERS)
        if media_type is None:
            return JSONResponse(content, headers=HEADERS)
        return Response(content, headers=HEADERS, media_type=media_type)

    async def overview(_: Request) -> Response:
        return await answer(explorer.overview)

    async def keypoints(request: Request) -> Response:
        return await answer(lambda: explorer.keypoints(request.path_params["number"]))

    async def neighbours(request: Request) -> Response:
        text = request.query_params.get("k", "12")
        if not re.fullmatch("[0-9]{1,9}", text) or not 1 <= int(text) <= MAX_NEIGHBOURS:
            reason = f"k must be from 1 to {MAX_NEIGHBOURS}, got {text[:20]!r}"
            return JSONResponse({"error": reason}, 400, HEADERS)
        others_only = request.query_params.get("others") == "1"
        return await answer(
            lambda: explorer.neighbours(
                request.path_params["key"], int(text), others_only=others_only
            )
        )

    async def photo(request: Request) -> Response:
        return await answer(lambda: explorer.photo(request.path_params["number"]), "image/jpeg")

    async def thumbnail(request: Request) -> Response:
        return await answer(lambda: explorer.thumbnail(request.path_params["number"]), "image/jpeg")

    async def patch(request: Request) -> Response:
        return await answer(lambda: explorer.patch(request.path_params["key"]), "image/png")

    routes = [
        *(Route(path, _page(*file)) for path, file in PAGE.items()),
        Route("/api/collection", overview),
        Route("/api/photos/{number:number}/keypoints", keypoints),
        Route("/api/neighbours/{key:number}", neighbours),
        Route("/photos/{number:number}", photo),
        Route("/thumbnails/{number:number}", thumbnail),
        Route("/patches/{key:number}", patch),
    ]
    trusted = Middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"])
    handlers = {HTTPException: _refuse, Exception: _report}
    return Starlette(routes=routes, middleware=[trusted], exception_handlers=handlers)


async def _refuse(_: Request, error: Exception) -> Response:
    """A request that no route answers."""
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, HEADERS)


async def _report(_: Request, error: Exception) -> Response:
    """A fault of the server: the page shows its first line, the terminal its traceback."""
    reason = f"the server failed, {type(error).__name__}: {error}"
    return JSONResponse({"error": reason}, 500, HEADERS)


def _page(name: str, media_type: str) -> Callable[[Request], Any]:
    """A handler for one file of the page, read once."""
    content = (resources.files("hiernorm.vision.explore") / "page" / name).read_bytes()

    async def send(_: Request) -> Response:
        return Response(content, headers=HEADERS, media_type=media_type)

    return send
