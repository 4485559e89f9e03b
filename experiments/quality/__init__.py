"""Is HN or the lossless rotation faster at equal quality? `make study-quality`."""
