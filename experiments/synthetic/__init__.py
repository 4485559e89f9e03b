"""How hard are the synthetic vectors, beside real ones? `make study-synthetic`."""
