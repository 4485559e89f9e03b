"""Whether a reconstruction is better when no match is missed, and what exact matches cost."""
