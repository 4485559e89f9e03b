"""The cost of a query: in a call of its own, in a group, with cells, for ten hits, by threads."""
