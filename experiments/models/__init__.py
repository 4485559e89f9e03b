"""Shipped models: how good are they beside those of others, and how fast do they describe."""
