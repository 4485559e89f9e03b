"""Adapters behave as their peers do: the same script with either gives the same answer."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
import types

import numpy as np
import pytest

import hiernorm
from paths import ROOT
from support import assert_same_bits, random_rows


@pytest.mark.parametrize(
    ("name", "peer", "extra"),
    [
        ("HNNeighbors", "sklearn", "sklearn"),
        ("HNDescriptorMatcher", "kornia", "kornia"),
        ("HNText", "sentence_transformers", "text"),
    ],
)
def test_a_missing_peer_is_named_with_its_extra(name, peer, extra):
    code = f"""
import sys
sys.modules[{peer!r}] = None
import hiernorm.adapters
try:
    hiernorm.adapters.{name}
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("this needs ")
    assert done.stdout.endswith(f"pip install 'hiernorm[{extra}]'\n")


def test_an_unknown_adapter_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'IndexPQ'"):
        _ = importlib.import_module("hiernorm.adapters").IndexPQ


# scikit-learn


@pytest.mark.filterwarnings("ignore:Skipping check check_array_api_input")
@pytest.mark.parametrize("name", ["HNNeighbors", "HNNeighborsTransformer"])
def test_passes_the_checks_of_scikit_learn(name):
    checks = pytest.importorskip("sklearn.utils.estimator_checks", reason="needs scikit-learn")
    estimator = getattr(importlib.import_module("hiernorm.adapters"), name)()
    results = checks.check_estimator(estimator)
    assert {r["status"] for r in results} <= {"passed", "skipped"}
    assert [r["check_name"] for r in results if r["status"] == "skipped"] in (
        [],
        ["check_array_api_input"],
    )


@pytest.mark.parametrize(("metric", "radius"), [("cosine", 0.4), ("euclidean", 3.5)])
@pytest.mark.parametrize("itself", [False, True])
def test_neighbours_and_distances_are_those_of_scikit_learn(itself, metric, radius):
    neighbors = pytest.importorskip("sklearn.neighbors", reason="needs scikit-learn")
    from hiernorm.adapters import HNNeighbors

    x, q = random_rows(300, 12).astype(np.float64), random_rows(40, 12, seed=1).astype(np.float64)
    query = None if itself else q
    ours = HNNeighbors(4, radius=radius, metric=metric).fit(x)
    theirs = neighbors.NearestNeighbors(n_neighbors=4, radius=radius, metric=metric).fit(x)
    for mine, other in zip(ours.kneighbors(query), theirs.kneighbors(query), strict=True):
        np.testing.assert_allclose(mine, other, rtol=0, atol=1e-6)
    found, expected = ours.radius_neighbors(query), theirs.radius_neighbors(query)
    for mine, other in zip(found[1], expected[1], strict=True):
        np.testing.assert_array_equal(np.sort(mine), np.sort(other))
    assert sum(map(len, found[1])) > 50
    for mode in ("connectivity", "distance"):
        mine, other = (e.kneighbors_graph(query, mode=mode).toarray() for e in (ours, theirs))
        np.testing.assert_allclose(mine, other, rtol=0, atol=1e-6)


def test_equal_rows_do_not_find_themselves():
    pytest.importorskip("sklearn", reason="needs scikit-learn")
    from hiernorm.adapters import HNNeighbors

    x = np.repeat(np.eye(3), 3, axis=0)
    rows = HNNeighbors(2, metric="cosine").fit(x).kneighbors(return_distance=False)
    assert rows.shape == (9, 2)
    assert (rows != np.arange(9)[:, None]).all()
    assert (rows // 3 == np.arange(9)[:, None] // 3).all()


def test_a_pipeline_classifies_as_scikit_learn_alone():
    neighbors = pytest.importorskip("sklearn.neighbors", reason="needs scikit-learn")
    pipeline = pytest.importorskip("sklearn.pipeline")
    from hiernorm.adapters import HNNeighborsTransformer

    x, q = random_rows(200, 6), random_rows(100, 6, seed=1)
    y = (x[:, 0] > x[:, 1]).astype(int)
    ours = pipeline.make_pipeline(
        HNNeighborsTransformer(5),
        neighbors.KNeighborsClassifier(5, metric="precomputed"),
    ).fit(x, y)
    theirs = neighbors.KNeighborsClassifier(5).fit(x, y)
    np.testing.assert_array_equal(ours.predict(q), theirs.predict(q))


# kornia


def test_the_matcher_is_kornias():
    feature = pytest.importorskip("kornia.feature", reason="needs hiernorm[kornia]")
    torch = pytest.importorskip("torch")
    from hiernorm.adapters import HNDescriptorMatcher

    base = random_rows(200, 64)
    a, b = (
        torch.nn.functional.normalize(torch.from_numpy(base + random_rows(200, 64, s) / 2)).double()
        for s in (1, 2)
    )
    a, b = a.float(), b.float()
    for mode in ("nn", "mnn", "snn", "smnn"):
        ours = HNDescriptorMatcher(mode, 0.9)(a, b)
        theirs = feature.DescriptorMatcher(mode, 0.9)(a.double(), b.double())
        assert ours[0].dtype == torch.float32
        torch.testing.assert_close(ours[1], theirs[1])
        torch.testing.assert_close(ours[0].double(), theirs[0], rtol=0, atol=1e-5)
        assert len(ours[1]) > 100
    with pytest.raises(ValueError, match="match_mode must be one of nn, mnn, snn, smnn, got 'x'"):
        HNDescriptorMatcher("x")


def test_the_descriptor_fits_into_local_feature():
    feature = pytest.importorskip("kornia.feature", reason="needs hiernorm[kornia]")
    torch = pytest.importorskip("torch")
    from hiernorm.adapters import HNDescriptor, HNDescriptorMatcher

    torch.manual_seed(0)
    picture = torch.nn.functional.interpolate(torch.rand(1, 1, 24, 24), size=192, mode="bicubic")
    detector = feature.ScaleSpaceDetector(40, resp_module=feature.BlobHessian())
    local = feature.LocalFeature(detector, HNDescriptor("hn16"), HNDescriptor.scaling_coef)
    matcher = feature.LocalFeatureMatcher(local, HNDescriptorMatcher("mnn"))
    with torch.no_grad():
        lafs, _, descriptors = local(picture)
        found = matcher({"image0": picture, "image1": picture})
    assert descriptors.shape == (*lafs.shape[:2], 128)
    assert len(found["keypoints0"]) >= 10
    torch.testing.assert_close(found["keypoints0"], found["keypoints1"])
    with pytest.raises(
        ValueError, match="no model 'hn99': the package has hardnet, hn16, hn16-int8, hn8"
    ):
        HNDescriptor("hn99")


# ann-benchmarks


def load_benchmark_module(monkeypatch, benchmark: str):
    """The algorithm, loaded as a benchmark does, with a base class of the same interface."""
    base = types.ModuleType("ann.base.module")

    class BaseANN:
        def done(self):
            pass

        def get_batch_results(self):
            return self.res

        def __str__(self):
            return self.name

    base.BaseANN = BaseANN
    for name in ("ann", "ann.base", "ann.hiernorm"):
        package = types.ModuleType(name)
        package.__path__ = []
        monkeypatch.setitem(sys.modules, name, package)
    monkeypatch.setitem(sys.modules, "ann.base.module", base)
    file = ROOT / "experiments" / benchmark / "hiernorm" / "module.py"
    spec = importlib.util.spec_from_file_location("ann.hiernorm.module", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def ann_module(monkeypatch):
    return load_benchmark_module(monkeypatch, "ann_benchmarks")


@pytest.fixture
def vibe_module(monkeypatch):
    return load_benchmark_module(monkeypatch, "vibe")


@pytest.mark.parametrize("metric", ["ip", "normalized", "cosine", "euclidean"])
def test_the_algorithm_of_vibe_is_exact_for_every_distance(vibe_module, metric):
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    folder = ROOT / "experiments" / "vibe" / "hiernorm"
    config = yaml.safe_load((folder / "config.yml").read_text(encoding="utf-8"))
    (definition,) = config["float"]["any"]
    assert definition["module"] == f"vibe.algorithms.{folder.name}"
    assert definition["singularity_image"] == folder.name
    (group,) = definition["run_groups"].values()
    x, q = (rows.astype(np.float64) for rows in (random_rows(500, 20), random_rows(9, 20, seed=1)))
    if metric != "euclidean":
        lengths = np.linalg.norm(x, axis=1) if metric == "cosine" else 1.0
        nearness = q @ x.T / lengths
    else:
        nearness = -np.square(q[:, None] - x).sum(axis=2)
    expected = np.argsort(-nearness, axis=1)[:, :4]
    for engine in group["args"]["engine"]:
        algorithm = getattr(vibe_module, definition["constructor"])(metric, engine)
        algorithm.fit(x.astype(np.float32))
        for setting in group["query_args"]["none"]:
            algorithm.set_query_arguments(setting)
        found = [algorithm.query(row, 4) for row in q.astype(np.float32)]
        np.testing.assert_array_equal(found, expected)
        assert str(algorithm) == f"hiernorm({engine})"
    with pytest.raises(NotImplementedError, match="hamming"):
        vibe_module.Hiernorm("hamming", "cascade")


@pytest.mark.parametrize("metric", ["angular", "euclidean"])
@pytest.mark.parametrize("engine", ["cascade", "exhaustive"])
def test_the_algorithm_of_ann_benchmarks_is_exact(ann_module, engine, metric):
    x, q = random_rows(500, 20), random_rows(9, 20, seed=1)
    algorithm = ann_module.Hiernorm(metric, engine)
    assert str(algorithm) == f"hiernorm({engine})"
    algorithm.fit(x)
    algorithm.set_query_arguments(0)
    if metric == "angular":
        rows = [r / np.linalg.norm(r, axis=1, keepdims=True) for r in (x, q)]
    else:
        rows = [x, q]
    distances = np.linalg.norm(rows[1][:, None].astype(np.float64) - rows[0], axis=2)
    expected = np.argsort(distances, axis=1)[:, :4]
    np.testing.assert_array_equal([algorithm.query(row, 4) for row in q], expected)
    algorithm.batch_query(q, 4)
    np.testing.assert_array_equal(algorithm.get_batch_results(), expected)
    assert set(algorithm.get_additional()) == {"phase2_share"}
    algorithm.done()
    with pytest.raises(NotImplementedError, match="jaccard"):
        ann_module.Hiernorm("jaccard", engine)


def test_the_config_of_ann_benchmarks_names_what_exists(ann_module):
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    folder = ROOT / "experiments" / "ann_benchmarks" / "hiernorm"
    config = yaml.safe_load((folder / "config.yml").read_text(encoding="utf-8"))
    x = random_rows(50, 8)
    for metric, definitions in config["float"].items():
        for definition in definitions:
            assert definition["module"].rpartition(".")[2] == folder.name
            assert definition["docker_tag"] == f"ann-benchmarks-{folder.name}"
            for group in definition["run_groups"].values():
                for argument in group["args"][0]:
                    arguments = [metric if a == "@metric" else a for a in definition["base_args"]]
                    made = getattr(ann_module, definition["constructor"])(*arguments, argument)
                    for query_argument in group["query_args"][0]:
                        made.set_query_arguments(query_argument)
                        made.fit(x)
                        np.testing.assert_array_equal(made.query(x[3], 1), [3])
    assert (folder / "Dockerfile").read_text(encoding="utf-8").startswith("FROM ann-benchmarks")


# sentence-transformers


def test_hn_ends_a_text_model_and_is_saved_with_it(tmp_path):
    pytest.importorskip("sentence_transformers", reason="needs hiernorm[text]")
    torch = pytest.importorskip("torch")
    from hiernorm.adapters import HNText

    module = HNText(major=4, alpha=1 / 8)
    rows = torch.from_numpy(random_rows(5, 16))
    embeddings = module({"sentence_embedding": rows.clone()})["sentence_embedding"]
    np.testing.assert_allclose(
        embeddings.numpy(), hiernorm.normalize(rows.numpy(), 4, 1 / 8), rtol=0, atol=1e-6
    )
    module.save(str(tmp_path))
    twin = HNText.load(str(tmp_path))
    assert (twin.major, twin.alpha) == (4, 1 / 8)
    again = twin({"sentence_embedding": rows.clone()})["sentence_embedding"]
    assert_same_bits(again.numpy(), embeddings.numpy())


def test_neighbours_have_the_form_that_umap_and_scanpy_take():
    neighbors = pytest.importorskip("sklearn.neighbors")
    adapters = importlib.import_module("hiernorm.adapters")
    x = np.random.default_rng(0).standard_normal((120, 6))
    distances, rows = adapters.HNNeighbors().fit(x).kneighbors(x, 10)
    theirs = neighbors.NearestNeighbors(n_neighbors=10).fit(x).kneighbors(x)
    np.testing.assert_array_equal(rows, theirs[1])
    np.testing.assert_array_equal(rows[:, 0], np.arange(120))
    assert distances.shape == theirs[0].shape
    graph = adapters.HNNeighborsTransformer(n_neighbors=9).fit_transform(x)
    expected = neighbors.KNeighborsTransformer(n_neighbors=9).fit_transform(x)
    np.testing.assert_array_equal(graph.indices, expected.indices)
    np.testing.assert_array_equal(graph.indptr, expected.indptr)
