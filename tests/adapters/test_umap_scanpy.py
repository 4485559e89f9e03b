"""UMAP and scanpy take exact neighbours, and make of them what they make of scikit-learn's.

Neither is among the extras of the tests: numba has no wheels for some platforms, and scanpy wants
an older pandas. Install them to run these.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="needs hiernorm[sklearn]")

from sklearn import neighbors

from hiernorm.adapters import HNNeighbors, HNNeighborsTransformer

pytestmark = pytest.mark.filterwarnings("ignore")

K = 15
X = np.random.default_rng(0).standard_normal((200, 10)).astype(np.float32)


def test_umap_makes_the_graph_of_exact_neighbours():
    umap = pytest.importorskip("umap", reason="needs umap-learn")
    graphs = []
    for distances, rows in (
        HNNeighbors().fit(X).kneighbors(X, K),
        neighbors.NearestNeighbors(n_neighbors=K).fit(X).kneighbors(X),
    ):
        model = umap.UMAP(
            n_neighbors=K, precomputed_knn=(rows, distances), n_epochs=5, random_state=0
        )
        assert model.fit_transform(X).shape == (len(X), 2)
        graphs.append(model.graph_)
    ours, theirs = graphs
    np.testing.assert_array_equal(ours.indptr, theirs.indptr)
    np.testing.assert_array_equal(ours.indices, theirs.indices)
    np.testing.assert_allclose(ours.data, theirs.data, atol=1e-4)


def test_scanpy_makes_the_connectivities_of_exact_neighbours():
    scanpy = pytest.importorskip("scanpy", reason="needs scanpy")
    found = []
    for transformer in (HNNeighborsTransformer(n_neighbors=K), "sklearn"):
        cells = scanpy.AnnData(X)
        scanpy.pp.neighbors(cells, n_neighbors=K, use_rep="X", transformer=transformer)
        found.append(cells.obsp["connectivities"].toarray())
    ours, theirs = found
    np.testing.assert_array_equal(ours > 0, theirs > 0)
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
