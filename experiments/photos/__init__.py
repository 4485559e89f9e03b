"""How well are photos matched and found? `make study-photos`."""
