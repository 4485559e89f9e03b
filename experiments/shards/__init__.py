"""What do shards on Ray cost, and how far do they go? `make study-shards`."""
