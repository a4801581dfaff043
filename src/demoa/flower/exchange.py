"""Messages out, replies in: as Flower's own, but no client can hold the others up.

Flower asks for all replies at once, every three seconds, and reads them one after the other; whoever announces a reply
and never delivers it keeps the server waiting for hours. Here each reply is asked for by itself, more often, in a
thread that may be left behind, and parts of it that are still on their way are asked for again sooner.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from flwr.app import Message
from flwr.serverapp import Grid
from flwr.superlink.grid import http_grid

THREADS = 1
"""How many replies are fetched at a time: all of them share a connection, and each of them takes memory."""
STUCK_SECONDS = 5.0
"""After so long with one reply, a thread gets a substitute."""
REQUESTS = 10
"""How many questions a second the SuperLink is asked at most."""
SOONEST, LATEST = 0.1, 0.5
"""Between so many seconds a part of a reply that is still on its way is asked for again; Flower has 1 and 10."""


@contextmanager
def quick_pulls() -> Iterator[None]:
    """Ask for the parts of replies more often than Flower does, while the block lasts."""
    module: Any = http_grid
    before = module.pull_objects
    module.pull_objects = partial(before, initial_backoff=SOONEST, backoff_cap=LATEST)
    try:
        yield
    finally:
        module.pull_objects = before


def exchange(grid: Grid, messages: Iterable[Message], *, timeout: float, poll: float) -> Iterator[Message]:
    """Send messages, and return the replies that come in time, one by one as they arrive.

    Args:
        grid: Where to.
        messages: What.
        timeout: How many seconds to wait for replies.
        poll: How often to ask for a reply, in seconds; the first times more often, and less with many messages.
    """
    waiting = [identity for identity in grid.push_messages(list(messages)) if identity]
    collection = _Collection(grid, waiting, time.monotonic() + timeout, max(poll, len(waiting) / REQUESTS))
    return collection.replies()


class _Collection:
    """Replies that are being collected."""

    def __init__(self, grid: Grid, waiting: list[str], deadline: float, poll: float) -> None:
        self._grid = grid
        self._deadline = deadline
        self._poll = poll
        self._count = len(waiting)
        # When each may be asked for next, and how long to pause after that.
        self._queue = deque((identity, 0.0, 0.01) for identity in waiting)
        self._found: deque[Message] = deque()
        self._changed = threading.Condition()
        self._busy: dict[threading.Thread, float] = {}
        self._over = False
        self._error: BaseException | None = None

    def replies(self) -> Iterator[Message]:
        """Yield what comes, until all is there or the time is over."""
        for _ in range(min(THREADS, self._count)):
            self._add_thread()
        left = self._count
        try:
            while left and self._wait():
                yield self._found.popleft()
                left -= 1
        finally:
            with self._changed:
                self._over = True  # what comes later is left aside

    def _wait(self) -> bool:
        """Return whether there is a reply, after waiting for one."""
        with self._changed:
            while not self._found:
                if self._error is not None:
                    raise self._error
                left = self._deadline - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(min(left, 1.0))
                self._replace_stuck()
            return True

    def _add_thread(self) -> None:
        thread = threading.Thread(target=self._work, daemon=True)
        self._busy[thread] = time.monotonic() + 1e9  # not with a reply yet
        thread.start()

    def _replace_stuck(self) -> None:
        now = time.monotonic()
        for thread, since in list(self._busy.items()):
            if now - since > STUCK_SECONDS:
                del self._busy[thread]
                self._add_thread()

    def _work(self) -> None:
        me = threading.current_thread()
        while (taken := self._take()) is not None:
            identity, pause = taken
            try:
                found = list(self._grid.pull_messages([identity]))
            except Exception as error:  # the SuperLink is gone: whoever waits is told
                with self._changed:
                    self._error = self._error or error
                    self._changed.notify_all()
                return
            with self._changed:
                late = me not in self._busy  # another thread took over; what was found counts all the same
                if not late:
                    self._busy[me] = time.monotonic() + 1e9
                if found:
                    self._found.extend(found)
                    self._changed.notify_all()
                else:
                    self._queue.append((identity, time.monotonic() + pause, min(self._poll, 1.5 * pause)))
            del found  # a reply may be large, and the next one may be long in coming

    def _take(self) -> tuple[str, float] | None:
        """Return the next message to ask for; None when there is nothing left to do for this thread."""
        while True:
            with self._changed:
                if self._over or threading.current_thread() not in self._busy:
                    return None
                now = time.monotonic()
                ready = [place for place, (_, due, _) in enumerate(self._queue) if due <= now]
                if ready:
                    identity, _, pause = self._queue[ready[0]]
                    del self._queue[ready[0]]
                    self._busy[threading.current_thread()] = now
                    return identity, pause
            time.sleep(0.005)
