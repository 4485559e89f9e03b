"""How fast are the keys of attention searched by its queries? `make study-attention`."""
