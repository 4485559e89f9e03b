"""A local web page that shows a collection of photos (extra ``explore``)."""

from hiernorm._deprecation import rename_module

rename_module("hiernorm.explore.answers", "hiernorm.explore.explorer")
