"""A small HTTP server on this machine that can break off, refuse ranges and change its files."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FileServer:
    """Serves ``files``; ``log`` keeps (path, Range header, status, bytes sent) per request."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.break_after: int | None = None
        self.takes_ranges = True
        self.tells_length = True
        self.tells_version = True
        self.log: list[tuple[str, str | None, int, int]] = []
        self.address = ""

    def url(self, name: str) -> str:
        return f"{self.address}/{name}"


@contextmanager
def serve() -> Iterator[FileServer]:
    """Run a server on a free port until the block ends."""
    state = FileServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _answer(self, state)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _answer(request: BaseHTTPRequestHandler, state: FileServer) -> None:
    asked = request.headers.get("Range")
    content = state.files.get(request.path.lstrip("/"))
    if content is None:
        state.log.append((request.path, asked, 404, 0))
        request.send_error(404)
        return
    version = f'"{hash(content):x}"'
    is_same = request.headers.get("If-Range", version) == version
    start = 0
    if asked is not None and state.takes_ranges and is_same:
        start = int(asked.removeprefix("bytes=").removesuffix("-"))
    if start and start >= len(content):
        state.log.append((request.path, asked, 416, 0))
        request.send_response(416)
        request.send_header("Content-Range", f"bytes */{len(content)}")
        request.send_header("Content-Length", "0")
        request.end_headers()
        return
    status = 206 if start else 200
    request.send_response(status)
    if state.tells_length:
        request.send_header("Content-Length", str(len(content) - start))
    if state.tells_version:
        request.send_header("ETag", version)
    if start:
        request.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
    request.end_headers()
    body = content[start:][: state.break_after]
    state.log.append((request.path, asked, status, len(body)))
    request.wfile.write(body)
    request.close_connection = True
