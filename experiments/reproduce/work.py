"""What all parts of a reproduction share, and the shape of a part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hiernorm.bench.cases import ALL_POINTS, Point, point_name
from hiernorm.reproduce.databases import Warehouse
from hiernorm.reproduce.options import Options
from hiernorm.reproduce.store import Result, Store
from hiernorm.reproduce.variants import Variant, Workshop

POINTS = ALL_POINTS
"""The paper's ten settings (K, alpha)."""


@dataclass
class Work:
    """Options, variants, databases and finished runs.

    Attributes
    ----------
    say
        Hears what is being done; set by whoever shows progress.
    """

    options: Options
    say: Callable[[str], None] = lambda doing: None
    workshop: Workshop = field(init=False)
    warehouse: Warehouse = field(init=False)
    store: Store = field(init=False)

    def __post_init__(self) -> None:
        options = self.options
        self.workshop = Workshop(options, lambda doing: self.say(doing))
        self.warehouse = Warehouse(options, lambda doing: self.say(doing))
        self.store = Store(options.out / "runs", options.settings(), options.force)

    def variant(self, point: Point | None) -> Variant:
        """The baseline (None) or an HN variant, trained now if it has not been."""
        if point is None:
            return self.workshop.plain
        self.say(f"{point_name(point)}: the network")
        return self.workshop.make(point)


@dataclass(frozen=True)
class Run:
    """One run of a part.

    Attributes
    ----------
    name
        Within the part; also of its JSON file.
    seconds
        To be expected at full size with ``--recipe turned`` on a quiet machine of two cores.
    make
        Runs it.
    """

    name: str
    seconds: float
    make: Callable[[], Result]


@dataclass(frozen=True)
class Part:
    """A table, figure or section of the paper.

    Attributes
    ----------
    name, title
        A word, and a line.
    plan
        Lists the runs; nothing is computed yet.
    """

    name: str
    title: str
    plan: Callable[[Work], list[Run]]


def slug(point: Point | None) -> str:
    """The name of a normalisation as part of a file's name.

    Examples
    --------
    >>> slug((16, 0.125)), slug(None)
    ('K16-a1_8', 'plain')
    """
    return point_name(point).replace("/", "_")
