"""How fast is exact search over text embeddings? `make study-text`."""
