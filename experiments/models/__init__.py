"""How good are the shipped models? `hiernorm evaluate`."""
