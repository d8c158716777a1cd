"""A consumer that lets each message through once, and survives a crash.

FakeBroker is in memory: it stands for a Kafka consumer, whose loop looks the same. The state is
saved before the offset is committed. After a crash between the two, the messages since the last
commit come again, and those that were judged before are held back.
"""

from collections.abc import Iterator

import sluice


class FakeBroker:
    """A topic with one partition: delivers from the last committed offset."""

    def __init__(self, messages: list[tuple[str, str]]) -> None:
        self.messages = messages
        self.committed = 0

    def poll(self, at: int, most: int) -> list[tuple[str, str]]:
        return self.messages[at : at + most]

    def commit(self, offset: int) -> None:
        self.committed = offset


def batches(broker: FakeBroker) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    at = broker.committed
    while batch := broker.poll(at, 3):
        at += len(batch)
        yield at, batch


def consume(broker: FakeBroker, crash_after: int | None = None) -> None:
    try:
        seen = sluice.Seen.load("consumer.state")
    except FileNotFoundError:
        seen = sluice.Seen(window=1_000_000, fpr=1e-9)
    for number, (offset, batch) in enumerate(batches(broker), start=1):
        first = seen.observe([key for key, _ in batch])
        # Deliver before the state is saved: a crash repeats a delivery, and loses none.
        for (key, value), new in zip(batch, first):
            if new:
                print("deliver", key, value)
        seen.save("consumer.state")
        if number == crash_after:
            print("crash, before the offset is committed")
            return
        broker.commit(offset)


topic = FakeBroker([(f"k{number % 5}", f"v{number}") for number in range(12)])
consume(topic, crash_after=1)
consume(topic)
