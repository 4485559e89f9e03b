"""A local web page to look around in a collection of photos (extra ``explore``)."""
