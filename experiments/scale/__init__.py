"""Does a database larger than memory build, open and search? `make study-scale`."""
