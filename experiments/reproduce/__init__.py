"""Does the paper hold? Every table, figure and claim of it, by one command: `make reproduce`.

    setting      the data, and what differs from the paper's setting
    quality      Table 1, Figures 1 to 3
    speed        Tables 2 and 3, Figure 4
    graphs       Table 4
    energy       Section 3 (HN post hoc), Section 7 (PCA)
    layout       Section 6
    determinism  Section 7 (determinism), future work (fixed point)
    future       future work on search: soft mode, cells
    training     future work on descriptors: higher K, hardest negatives

Each of these files lists its runs, measures them, renders its tables and pictures and judges the
claims that rest on them. `options`, `networks`, `databases` and `work` are what the runs share,
`findings` what the rendering shares; `report` has everything in order.
"""
