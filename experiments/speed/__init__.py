"""How fast is hiernorm beside other libraries? `make bench`."""
