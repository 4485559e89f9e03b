"""The benchmark behind `hiernorm bench`: our engines beside their peers, in one process.

Three steps, each a module of its own:

    run      cases -> data -> built methods -> the rows of a report   (cases, data, methods)
    measure  interleaved timings of one group of methods              (measure, conditions)
    render   a report read back from JSON -> tables and a picture     (render, picture, goals)

The report (`report`) is all that passes from the first two to the third: whatever a table or
picture shows can be drawn again from the JSON file alone.
"""
