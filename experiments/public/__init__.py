"""How fast are the shapes that others publish figures for? `make study-public`."""
