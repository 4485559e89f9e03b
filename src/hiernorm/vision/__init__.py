"""Photos and patches: read photos, find keypoints, cut patches (extra ``vision``, no torch)."""

from hiernorm.vision.frames import Frames
from hiernorm.vision.keypoints import detect
from hiernorm.vision.patches import cut_patches
from hiernorm.vision.photos import list_photos, read_grey

__all__ = ["Frames", "cut_patches", "detect", "list_photos", "read_grey"]
