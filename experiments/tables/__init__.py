"""Tables of README and docs, rendered from results: `make tables`.

A page has a pair of markers, and what stands between them is rendered:

    <!-- table: speed -->
    <!-- /table -->

`experiments/<question>/tables.py` has a function for each table; see :func:`registry.table`.
"""
