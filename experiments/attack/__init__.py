"""Does damage, a crash or company ever give a wrong answer? `make attack`."""
