"""`hiernorm explore`: a collection of photos in the browser."""

from __future__ import annotations

import contextlib
import socket
import webbrowser
from pathlib import Path

import click

from hiernorm.cli.help import examples, option
from hiernorm.cli.options import PATH
from hiernorm.cli.requirements import needs
from hiernorm.extras import import_extra
from hiernorm.vision.collection import Collection


@click.command(epilog=examples("hiernorm explore holiday.hn"))
@click.argument("collection", type=PATH)
@option(
    "--port",
    default=0,
    type=click.IntRange(0, 65535),
    show_default="any free port",
    help="Port of the page.",
)
@option("--browser/--no-browser", default=True, help="Open the page in a browser.")
@needs("explore", "cv2", "pyarrow", "starlette", "uvicorn")
def explore(collection: Path, port: int, browser: bool) -> None:
    """Open a web page on a collection of photos.

    Click a keypoint of a photo to see its exact nearest patches. The page is served on this machine
    only and needs no internet. Press Ctrl-C to stop.
    """
    uvicorn = import_extra("uvicorn", "explore")
    server = import_extra("hiernorm.vision.explore.server", "explore")
    explorer = import_extra("hiernorm.vision.explore.explorer", "explore")
    app = server.make_app(explorer.Explorer(Collection.open(collection)))
    # It listens before the address is printed, so that whoever reads it can connect at once.
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((server.HOST, port))
            listener.listen()
        except OSError as error:
            raise click.ClickException(f"port {port} is not free: {error.strerror}") from error
        address = f"http://{server.HOST}:{listener.getsockname()[1]}/"
        config = uvicorn.Config(app, log_level="warning", access_log=False)
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is how one leaves, not an error
            click.echo(address)
            if browser:
                webbrowser.open(address)
            uvicorn.Server(config).run(sockets=[listener])
