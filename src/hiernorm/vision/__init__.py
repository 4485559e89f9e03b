"""Photos: keypoints, patches, descriptors, matches, collections (extra ``vision``, no torch)."""

from hiernorm._deprecation import rename_module, renamed_names
from hiernorm.vision.features import FeatureSettings, PhotoFeatures, describe_photo
from hiernorm.vision.frames import Frames
from hiernorm.vision.geometry import TwoViewGeometry, estimate_geometry
from hiernorm.vision.keypoints import detect
from hiernorm.vision.patches import cut_patches
from hiernorm.vision.photo_match import PhotoMatch, match_photos
from hiernorm.vision.photos import list_photos, read_grey

__all__ = [
    "FeatureSettings",
    "Frames",
    "PhotoFeatures",
    "PhotoMatch",
    "TwoViewGeometry",
    "cut_patches",
    "describe_photo",
    "detect",
    "estimate_geometry",
    "list_photos",
    "match_photos",
    "read_grey",
]

rename_module(
    "hiernorm.vision.description",
    "hiernorm.vision.features",
    {"Description": "PhotoFeatures", "Recipe": "FeatureSettings", "reduced": "reduce_image"},
)
rename_module(
    "hiernorm.vision.intake",
    "hiernorm.vision.ingest",
    {"Outcome": "IngestResult", "take_in": "ingest_photos"},
)
rename_module("hiernorm.vision.location", "hiernorm.vision.place_recognition")
rename_module(
    "hiernorm.vision.pairing",
    "hiernorm.vision.photo_match",
    {"Pairing": "PhotoMatch", "pair_photos": "match_photos"},
)
__getattr__ = renamed_names(
    __name__,
    {
        "Agreement": "hiernorm.vision.geometry:TwoViewGeometry",
        "Description": "hiernorm.vision.features:PhotoFeatures",
        "Pairing": "hiernorm.vision.photo_match:PhotoMatch",
        "Recipe": "hiernorm.vision.features:FeatureSettings",
        "agree": "hiernorm.vision.geometry:estimate_geometry",
        "pair_photos": "hiernorm.vision.photo_match:match_photos",
    },
)
