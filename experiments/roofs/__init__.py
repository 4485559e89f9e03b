"""What bounds a search, and how far from it are we? `make study-roofs`."""
