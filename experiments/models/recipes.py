"""Recipes for the last layers, by name."""

from __future__ import annotations

from typing import Any

COMMON: dict[str, Any] = {
    "loss": "hardest",
    "fpr_weight": 0.3,
    "distill_weight": 3.0,
    "batch": 512,
    "sampling": "points",
    "places_per_batch": 2,
    "freeze_statistics": True,
    "augment": ("flips", "turns", "frames", "light"),
    "head_layers": 2,
    "head_learning_rate": 1e-3,
    "epochs": 0,
    "seed": 5,
}
"""What all recipes share."""

RATE: dict[str, Any] = {"fpr_weight": 3.3, "distill_weight": 3.3}
SLOW_RATE: dict[str, Any] = {**RATE, "head_learning_rate": 5e-4}
"""The false-positive rate counts most; docs/notes/2026-11-rate.md."""

RECIPES: dict[str, dict[str, Any]] = {
    "major": {"spread_weight": 0.2, "major_weight": 0.5},
    "major_seed6": {"spread_weight": 0.2, "major_weight": 0.5, "seed": 6},
    "major_seed7": {"spread_weight": 0.2, "major_weight": 0.5, "seed": 7},
    "major_order1": {"spread_weight": 0.2, "major_weight": 0.5, "second_order_weight": 1.0},
    "major_order3": {"spread_weight": 0.2, "major_weight": 0.5, "second_order_weight": 3.0},
    "less_spread": {"spread_weight": 0.1, "major_weight": 0.5},
    "no_major": {"spread_weight": 0.1},
    "no_major_order1": {"spread_weight": 0.1, "second_order_weight": 1.0},
    "rate": {**RATE, "phase2_weight": 0.33},
    "rate_plain": RATE,
    "rate_slow": {**SLOW_RATE, "phase2_weight": 0.33},
    "rate_tight": {**SLOW_RATE, "phase2_weight": 1.0},
    "rate_long": {**SLOW_RATE, "phase2_weight": 0.6},
    "rate_slow_plain": SLOW_RATE,
    "turned_slow": {**RATE, "phase2_weight": 0.33},
    "turned_tight": {**RATE, "phase2_weight": 1.0},
    **{
        f"rate_{name}_seed{seed}": {**SLOW_RATE, "phase2_weight": share, "seed": seed}
        for seed in (6, 7)
        for name, share in (("slow", 0.33), ("tight", 1.0))
    },
}
"""Recipes by name: what each changes."""
