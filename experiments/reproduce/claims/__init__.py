"""The claims of the paper, and two of ours: each is judged by the finished runs alone.

    claim        what a claim is, and its verdicts
    reasons      what differs from the paper's setting
    determinism  exact, and the same every time
    quality      what HN costs and brings in quality
    speed        Algorithm 1, its layout and its model; the cascade
    graphs       beside hnswlib
    future       what the paper leaves open

`experiments.reproduce.summary` puts them in order.
"""
