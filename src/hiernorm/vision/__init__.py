"""Photos: keypoints, patches, descriptors, matches, collections (extra ``vision``, no torch)."""

from hiernorm.vision.features import Description, Recipe, describe_photo
from hiernorm.vision.frames import Frames
from hiernorm.vision.geometry import Agreement, agree
from hiernorm.vision.keypoints import detect
from hiernorm.vision.patches import cut_patches
from hiernorm.vision.photo_match import Pairing, pair_photos
from hiernorm.vision.photos import list_photos, read_grey

__all__ = [
    "Agreement",
    "Description",
    "Frames",
    "Pairing",
    "Recipe",
    "agree",
    "cut_patches",
    "describe_photo",
    "detect",
    "list_photos",
    "pair_photos",
    "read_grey",
]
