"""What we know about hiernorm and how we know it: one folder per question. Not shipped.

Run an experiment from the root of a clone, for example ``python -m experiments.speed --smoke``.
`README.md` lists every question with its command, its results and the page that shows them.
"""
