"""The parts of the paper, one file each: what is run for a table, a figure or a section."""
