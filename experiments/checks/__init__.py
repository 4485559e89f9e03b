"""What do sanitizers, emulation, fuzzers and the long tests find? `make checks`."""
