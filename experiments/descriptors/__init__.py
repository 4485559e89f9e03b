"""How fast are real descriptors searched, beside other libraries? `make study-descriptors`."""
