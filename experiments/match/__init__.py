"""How fast are two sets of descriptors matched? `make study-match`."""
