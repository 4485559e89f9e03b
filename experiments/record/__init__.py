"""Every figure of the pages measured again, on one commit, on a quiet machine: `make record`."""
