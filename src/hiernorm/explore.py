"""The former home of :mod:`hiernorm.vision.explore`."""

from hiernorm._deprecation import rename_module

rename_module("hiernorm.explore.answers", "hiernorm.vision.explore.explorer")
rename_module("hiernorm.explore.explorer", "hiernorm.vision.explore.explorer")
rename_module("hiernorm.explore.server", "hiernorm.vision.explore.server")
