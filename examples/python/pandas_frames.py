"""pandas: each user's first row, and each (user, ad) once per ten minutes of event time."""

import pandas as pd

import sluice

minutes = pd.to_timedelta([0, 1, 2, 5, 14], unit="min")
clicks = pd.DataFrame(
    {
        "user": ["ann", "bob", "ann", "ann", "bob"],
        "ad": [1, 1, 2, 1, 1],
        "at": pd.Timestamp("2024-03-01 12:00", tz="UTC") + minutes,
    }
)

# Frame after frame: unlike drop_duplicates(), `seen` remembers what came before.
seen = sluice.Seen(fpr=1e-6)
print("Each user once:")
print(clicks[seen.observe(clicks["user"])].to_string(index=False))
print("The next frame has", int(seen.observe(clicks["user"]).sum()), "new users")

# Two columns are the key, and the times are those of the events.
window = sluice.Seen(window="10m", fpr=1e-6)
print("Each (user, ad) once in ten minutes:")
print(clicks[window.observe(clicks[["user", "ad"]], times=clicks["at"])].to_string(index=False))
