"""The paper, reproduced: every table, figure and claim, by one command.

Three steps, as in :mod:`hiernorm.bench`:

    run      parts -> runs, one JSON each             (parts, plan, store; variants, databases)
    measure  by hiernorm.learn and hiernorm.bench: nothing is timed or scored in a second way
    render   JSON -> tables, pictures, claims, pages  (tables, pictures, claims, markdown, page)
"""
