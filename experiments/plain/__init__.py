"""How fast are plain vectors, which no training has changed? `make study-plain`."""
