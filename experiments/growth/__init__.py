"""How does the time of a search grow with the number of entries? `make study-growth`."""
