"""The transfer of one file over HTTP, which continues where an earlier one broke off."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hiernorm.extras import import_extra

CHUNK = 1 << 14
"""Bytes taken at a time: at most as many are lost when a transfer breaks off."""

TIMEOUT = (20.0, 60.0)
"""Seconds to wait for a connection, and for the next bytes."""

OnBytes = Callable[[int, "int | None"], None]
"""Hears how many bytes are there, and of how many, if the server says."""


class TransferError(RuntimeError):
    """A file that did not arrive in full; the message says what is kept."""


class Transfer:
    """Downloads one file, as pooch asks for it, by way of ``part``.

    What has arrived stays in ``part``, and what is known of it beside it, until the file is
    complete: the next transfer asks for the rest only.

    Parameters
    ----------
    part
        File that holds what has arrived.
    on_bytes
        Called now and then with the bytes there, and their number in the end.
    check
        Called with the complete file before it is handed over; raises if it is not good, and then
        nothing is kept.
    """

    def __init__(self, part: Path, on_bytes: OnBytes, check: Callable[[Path], None]) -> None:
        self._part = part
        self._note = part.with_name(part.name + ".json")
        self._on_bytes = on_bytes
        self._check = check

    def __call__(self, url: str, output_file: str, pooch: object) -> None:
        """Download ``url`` into ``output_file``."""
        requests = import_extra("requests", "data")
        try:
            total = self._receive(requests, url)
        except requests.HTTPError as error:
            raise TransferError(f"{url} is not to be had: {error}") from error
        except (requests.RequestException, OSError) as error:
            raise TransferError(f"{url} broke off: {error}; {self._kept()}") from error
        size = self._part.stat().st_size
        if total is not None and size != total:
            raise TransferError(
                f"{url} broke off: expected {total:,} bytes, got {size:,}; {self._kept()}"
            )
        try:
            self._check(self._part)
        except Exception:
            self._forget()
            raise
        os.replace(self._part, output_file)
        self._note.unlink(missing_ok=True)

    def _receive(self, requests: Any, url: str) -> int | None:
        """Fetch what is missing; return the size that the server promises."""
        have, validator = self._recall(url)
        headers = {"Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
            if validator:
                # If the file has changed meanwhile, all of it comes again.
                headers["If-Range"] = validator
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
            if response.status_code == requests.codes.requested_range_not_satisfiable:
                if response.headers.get("Content-Range") == f"bytes */{have}":
                    return have  # All of it had come.
                # What is there is longer than the file: not a part of it.
                self._forget()
                return self._receive(requests, url)
            response.raise_for_status()
            if response.status_code != requests.codes.partial_content:
                have = 0
            length = response.headers.get("Content-Length")
            total = None if length is None else have + int(length)
            self._part.parent.mkdir(parents=True, exist_ok=True)
            self._check_room(None if total is None else total - have)
            validator = _strong_validator(response.headers)
            self._note.write_text(json.dumps({"url": url, "validator": validator}))
            with open(self._part, "ab" if have else "wb") as file:
                self._on_bytes(have, total)
                for chunk in response.iter_content(CHUNK):
                    file.write(chunk)
                    have += len(chunk)
                    self._on_bytes(have, total)
        return total

    def _recall(self, url: str) -> tuple[int, str | None]:
        """How many bytes of this address are there, and the mark of their version."""
        try:
            note = json.loads(self._note.read_text())
            if note["url"] == url:
                return self._part.stat().st_size, note["validator"]
        except (OSError, ValueError, KeyError, TypeError):
            pass
        self._forget()
        return 0, None

    def _forget(self) -> None:
        self._part.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)

    def _kept(self) -> str:
        if not self._part.exists():
            return "nothing came"
        return f"{self._part.stat().st_size:,} bytes are kept: run this again to continue"

    def _check_room(self, missing: int | None) -> None:
        free = shutil.disk_usage(self._part.parent).free
        if missing is not None and missing > free:
            raise OSError(
                f"{missing:,} bytes are to come, and {self._part.parent} has room for {free:,}"
            )


def _strong_validator(headers: Any) -> str | None:
    """What If-Range may be asked with: an ETag that is not weak, or else the date."""
    tag: str | None = headers.get("ETag")
    if tag is not None and not tag.startswith("W/"):
        return tag
    date: str | None = headers.get("Last-Modified")
    return date
