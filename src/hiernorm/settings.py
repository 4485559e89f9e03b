"""The settings of an index: its parameters, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from hiernorm import _core
from hiernorm._deprecation import renamed_names
from hiernorm.arrays import as_count, as_number
from hiernorm.normalize import check_split

Metric: TypeAlias = Literal["ip", "cosine", "l2"]
Engine: TypeAlias = Literal["cascade", "paper", "exhaustive", "flat"]
METRICS: tuple[Metric, ...] = get_args(Metric)
ENGINES: tuple[Engine, ...] = get_args(Engine)
EXACT = -1.0
"""The value of beta that means "no soft mode" in the core."""


@dataclass(frozen=True)
class IndexSettings:
    """The parameters of a :class:`hiernorm.Index`, whose docstring explains each."""

    dim: int
    major: int | None
    alpha: float | None
    metric: Metric
    engine: Engine
    cells: bool | None
    threads: int | None

    def __post_init__(self) -> None:
        as_count("dim", self.dim, least=2)
        if self.alpha is not None and self.major is None:
            raise ValueError("alpha needs major: the K that the vectors were normalised with")
        if self.major is not None:
            as_count("major", self.major)
            check_split(self.dim, self.major, 0.0 if self.alpha is None else self.alpha)
        if self.metric not in METRICS:
            raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {self.metric!r}")
        if self.engine not in ENGINES:
            raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {self.engine!r}")
        if self.engine == "paper" and self.alpha is None:
            raise ValueError("engine 'paper' needs alpha: Algorithm 1 searches HN vectors")
        if self.engine == "paper" and self.metric == "l2":
            raise ValueError("engine 'paper' is Algorithm 1, by inner products: metric l2 is not")
        if self.cells is not None and not isinstance(self.cells, (bool, np.bool_)):
            raise TypeError(f"cells must be True, False or None, got {self.cells!r}")
        if self.cells and self.engine != "cascade":
            raise ValueError(f"cells are for engine 'cascade', not for {self.engine!r}")
        if self.threads is not None:
            as_count("threads", self.threads)

    @property
    def rotates(self) -> bool:
        """Whether vectors are plain and get a rotation."""
        return self.alpha is None

    @property
    def needs_fit(self) -> bool:
        """Whether the engine needs an encoding that is fitted to the data."""
        return self.engine in ("cascade", "paper")

    @property
    def plans(self) -> bool:
        """Whether the data decide between the cascade and the flat scan."""
        return self.engine == "cascade" and self.rotates and not (self.major or self.cells)

    @property
    def groups(self) -> bool:
        """Whether entries may be grouped into cells."""
        return self.engine == "cascade" and self.cells is not False

    def make_core(self, engine: Engine | None = None) -> _core.Index:
        """An empty native index with these parameters, or with another ``engine``."""
        alpha = 0.0 if self.alpha is None else float(self.alpha)
        return _core.Index(
            self.dim,
            self.metric,
            engine or self.engine,
            alpha,
            None if self.cells is None else bool(self.cells),
        )

    def checked_beta(self, beta: float | None) -> float:
        """``beta`` of soft mode as the core takes it; EXACT without soft mode."""
        if beta is None:
            return EXACT
        if self.alpha is None:
            raise ValueError("beta needs an index with alpha: soft mode is for HN vectors")
        if self.metric == "l2":
            raise ValueError("beta is a share of inner products: soft mode is not for metric l2")
        beta = as_number("beta", beta)
        if not 0 <= beta <= self.alpha:
            raise ValueError(f"beta must be from 0 to alpha = {self.alpha}, got {beta}")
        return EXACT if beta == self.alpha else beta

    def digested(self) -> str:
        """The parameters that an answer depends on, as text for the digest."""
        text = f"hiernorm 1 dim={self.dim} metric={self.metric}"
        if self.alpha is not None:
            text += f" major={self.major} alpha={float(self.alpha)!r}"
        return text


__getattr__ = renamed_names(__name__, {"Settings": "hiernorm.settings:IndexSettings"})
