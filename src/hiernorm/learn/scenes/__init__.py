"""Scenes: collections of patches in the UBC format, downloaded or made from photos."""
