"""Polars: rows that are new, batch by batch, with a state file between two runs."""

import polars as pl

import sluice

BATCHES = [
    pl.DataFrame({"order": ["o-1", "o-2", "o-1"], "cents": [500, 250, 500]}),
    pl.DataFrame({"order": ["o-3", "o-2", "o-4"], "cents": [100, 250, 900]}),
]

for batch in BATCHES:
    try:
        seen = sluice.Seen.load("orders.state")
    except FileNotFoundError:
        seen = sluice.Seen(fpr=1e-6)
    new = batch.filter(seen.observe(batch["order"]))
    print(new.rows())
    seen.save("orders.state")
