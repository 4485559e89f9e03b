"""Former names keep working, and say what they are called now."""

from __future__ import annotations

import importlib
import sys
import warnings

import numpy as np
import pytest

from hiernorm import _deprecation


def test_an_unknown_name_is_an_error_and_no_warning() -> None:
    find = _deprecation.renamed_names("somewhere", {"old": "math:sqrt"})
    with pytest.raises(AttributeError, match="module 'somewhere' has no attribute 'older'"):
        find("older")


def test_a_former_module_passes_names_on_that_stayed_the_same(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "former_maths", None)
    _deprecation.rename_module("former_maths", "math", {"root": "sqrt"})
    former = importlib.import_module("former_maths")
    with pytest.warns(DeprecationWarning, match="former_maths.floor is now called math.floor"):
        assert former.floor(1.5) == 1
    with pytest.raises(AttributeError):
        _ = former.nothing_of_this_name


def test_looking_at_a_former_module_warns_nobody(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "former_maths", None)
    _deprecation.rename_module("former_maths", "math")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not hasattr(sys.modules["former_maths"], "__warningregistry__")
        assert not hasattr(sys.modules["former_maths"], "__path__")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("hiernorm.distributed:Missing", "hiernorm.distributed:MissingShards"),
        ("hiernorm.distributed.answers:Missing", "hiernorm.distributed:MissingShards"),
        ("hiernorm.distributed.building:build", "hiernorm.distributed:build"),
        ("hiernorm.explore.answers:Explorer", "hiernorm.vision.explore.explorer:Explorer"),
        ("hiernorm.explore.explorer:Explorer", "hiernorm.vision.explore.explorer:Explorer"),
        ("hiernorm.explore.server:make_app", "hiernorm.vision.explore.server:make_app"),
        ("hiernorm.learn:Description", "hiernorm.learn:PatchDescriptors"),
        ("hiernorm.learn:Run", "hiernorm.learn:TrainingRun"),
        ("hiernorm.learn:Settings", "hiernorm.learn:TrainingSettings"),
        ("hiernorm.learn.describers:Description", "hiernorm.learn:PatchDescriptors"),
        ("hiernorm.learn.run:Run", "hiernorm.learn:TrainingRun"),
        ("hiernorm.learn.scenes.maker:Recipe", "hiernorm.learn.scenes.maker:SceneSettings"),
        (
            "hiernorm.learn.scenes.matched:TrackRecipe",
            "hiernorm.learn.scenes.matched:TrackSettings",
        ),
        ("hiernorm.learn.settings:Settings", "hiernorm.learn:TrainingSettings"),
        ("hiernorm.vision:Agreement", "hiernorm.vision:TwoViewGeometry"),
        ("hiernorm.vision:Description", "hiernorm.vision:PhotoFeatures"),
        ("hiernorm.vision:Pairing", "hiernorm.vision:PhotoMatch"),
        ("hiernorm.vision:Recipe", "hiernorm.vision:FeatureSettings"),
        ("hiernorm.vision:agree", "hiernorm.vision:estimate_geometry"),
        ("hiernorm.vision:pair_photos", "hiernorm.vision:match_photos"),
        ("hiernorm.vision.description:Recipe", "hiernorm.vision:FeatureSettings"),
        ("hiernorm.vision.description:describe_photo", "hiernorm.vision:describe_photo"),
        ("hiernorm.vision.geometry:agree", "hiernorm.vision:estimate_geometry"),
        ("hiernorm.vision.intake:take_in", "hiernorm.vision.ingest:ingest_photos"),
        ("hiernorm.vision.location:locate", "hiernorm.vision.place_recognition:locate"),
        ("hiernorm.vision.pairing:pair_photos", "hiernorm.vision:match_photos"),
        ("hiernorm.settings:Settings", "hiernorm.settings:IndexSettings"),
    ],
)
def test_former_names_are_the_same_objects(old: str, new: str) -> None:
    current = find(new)
    module, name = old.split(":")
    with pytest.warns(DeprecationWarning, match=f"{module}.{name} is now called ") as caught:
        assert find(old) is current
    assert caught[0].filename == __file__  # where the former name is used


def find(name: str) -> object:
    module, attribute = name.split(":")
    return getattr(importlib.import_module(module), attribute)


def test_former_attributes_and_keywords_give_the_same_values(tmp_path) -> None:
    from hiernorm import vision

    geometry = vision.TwoViewGeometry("homography", None, np.zeros(3, np.bool_))
    with pytest.warns(DeprecationWarning, match="TwoViewGeometry.geometry is now called kind"):
        assert geometry.geometry == "homography"
    match = vision.PhotoMatch(None, geometry, {}, None)
    with pytest.warns(DeprecationWarning, match="PhotoMatch.agreement is now called geometry"):
        assert match.agreement is geometry
    settings = vision.FeatureSettings()
    expected = "the parameter recipe of describe_photo is now called settings"
    with pytest.warns(DeprecationWarning, match=expected), pytest.raises(FileNotFoundError):
        vision.describe_photo(tmp_path / "none.jpg", recipe=settings)


def test_scenes_are_made_with_the_former_keyword(tmp_path) -> None:
    from hiernorm.learn.scenes.maker import SceneSettings, make_scene
    from hiernorm.learn.scenes.matched import TrackSettings, make_matched_scene

    for make, settings in ((make_scene, SceneSettings()), (make_matched_scene, TrackSettings())):
        expected = f"the parameter recipe of {make.__name__} is now called settings"
        with pytest.warns(DeprecationWarning, match=expected), pytest.raises(FileNotFoundError):
            make([tmp_path / "none.jpg"], tmp_path / "out.zip", recipe=settings)
