"""What all experiments share.

    points, conditions   what is searched, and how: (K, alpha), groups, threads
    methods              one wrapper per method: hiernorm, FAISS, hnswlib, USearch, NumPy
    timing, comparison   interleaved rounds; build, prove agreement, find recall, time
    machine, records     where a run was made; the one schema of results, and the store that resumes
    patches, vectors     patches of scenes and photos with the cache of their features; rows
    page, progress       tables and reports as Markdown and HTML; a bar on stderr
    command              options that all commands have, and where results go

Run, measure and render are three steps: a run writes records, and whatever a table or picture shows
can be drawn again from the records alone.
"""
