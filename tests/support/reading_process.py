"""A process that searches a database in a loop and writes down what it was told.

Run as a script with (folder, output, seconds): one line per answer, with the generation it is of.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import hiernorm
from database_support import QUERIES

K = 4


def main() -> None:
    """Search, refresh, search again until the time is up."""
    folder, output, seconds = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
    db = hiernorm.Database.open(folder)
    end = time.monotonic() + seconds
    with output.open("w") as file:
        while time.monotonic() < end:
            for _ in range(3):
                hits = db.search(QUERIES, K, threads=1)
                bits = [score.hex() for score in hits.scores.ravel().tolist()]
                file.write(json.dumps([db.generation, hits.ids.tolist(), bits]) + "\n")
            db.refresh()
            db = db if db.generation % 3 else hiernorm.Database.open(folder)


if __name__ == "__main__":
    main()
