"""Webhooks: senders repeat an event until it is acknowledged; each must be handled once.

The key is remembered before the event is handled. If handling fails, the key is taken back, so that
the repeat is handled.
"""

import datetime as dt
from collections.abc import Callable

import sluice

Event = dict[str, str]

# Strangers choose the ids: a keyed hash keeps them from making ids that collide.
seen = sluice.Seen(window="24h", fpr=1e-9, untrusted_keys=True)


def receive(event: Event, handle: Callable[[Event], None]) -> str:
    """Returns what to answer."""
    if not seen.first((event["sender"], event["id"])):
        return "200 duplicate"
    try:
        handle(event)
    except Exception as error:
        seen.forget((event["sender"], event["id"]))
        return f"500 {error}"
    return "200 handled"


def pay(event: Event) -> None:
    """Fails once, for e-2."""
    if event["id"] == "e-2" and not failed:
        failed.append(event["id"])
        raise RuntimeError("the bank is closed")


failed: list[str] = []
for number in ["e-1", "e-1", "e-2", "e-2", "e-2"]:
    print(number, receive({"sender": "shop", "id": number}, pay))

# Ids that must not be repeated for a day by the time of the event, not of its arrival:
by_event = sluice.Seen(window=dt.timedelta(days=1))
noon = dt.datetime(2024, 3, 1, 12, tzinfo=dt.timezone.utc)
for hours in (0, 23, 25):
    print(f"+{hours}h", by_event.first("e-1", noon + dt.timedelta(hours=hours)))
