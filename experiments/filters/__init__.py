"""What does a filter cost? `make study-filters`."""
