"""No test of this folder leaves a server behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite("workload")

from server import running, stop_all  # noqa: E402


@pytest.fixture(autouse=True)
def _no_server_is_left() -> Iterator[None]:
    yield
    left = running()
    stop_all()
    assert not left, f"servers are left: {left}"
