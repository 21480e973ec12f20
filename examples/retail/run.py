#!/usr/bin/env python3
"""Runs the retail example: starts the servers, lets the shop sell, kills the pipeline once, and proves the result.

    make servers          # once: PostgreSQL, Kafka, an S3 server and Spark's connectors
    make demo-retail      # or: python examples/retail/run.py --seconds 120 --rate 1000

Everything is on 127.0.0.1 and in a temporary folder, and gone when this ends, also by Ctrl-C.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from driver import Driver
from proof import NotProvedError, Proof, prove
from screen import Screen
from shop import COLLECTION, NOBODY, PRODUCTS, Shop, products
from shop_servers import PIPELINE, PRODUCTS_TABLE, NotInstalledError, ShopServers
from warehouse import Statistics, Warehouse

import semistream as ss

_SECONDS_TO_START = 600.0
_SECONDS_WITHOUT_PROGRESS = 600.0
_POLL_SECONDS = 0.2


class FailedError(Exception):
    """The example cannot go on; the message is one sentence."""


class Retail:
    """The shop, its servers and its pipeline."""

    def __init__(self, folder: Path, seconds: float, rate: int, screen: Screen) -> None:
        self._folder = folder
        self._seconds = seconds
        self._rate = rate
        self._screen = screen
        self._stack = ExitStack()
        self._warehouse = Warehouse(folder / "warehouse" / "orders")
        self._statistics = Statistics(folder / "state" / "statistics.jsonl")
        self._pins: dict[int, int] = {}
        self._shop: Shop | None = None

    def __enter__(self) -> Retail:
        self._servers = self._stack.enter_context(ShopServers(self._screen))
        return self

    def __exit__(self, *_: object) -> None:
        """Stop everything, the last that was started first."""
        self._stack.close()

    def run(self) -> Proof:
        """Do everything, in its order."""
        self._screen.heading("The pipeline", f"examples/retail/pipeline.toml, {self._rate:,} orders a second")
        file = self._folder / PIPELINE.name
        shutil.copy(PIPELINE, file)
        driver = self._started(file)
        self._stack.enter_context(self._pins_watched())
        shop = self._shop = self._shop_opened()
        self._screen.event("The shop is open. Spark is starting; the first micro-batch takes longest.")
        self._wait(driver, lambda: self._warehouse.rows > 0, _SECONDS_TO_START, "the first orders in the warehouse")
        began = time.monotonic()

        def until(share: float) -> Callable[[], bool]:
            return lambda: time.monotonic() >= began + share * self._seconds

        self._wait(driver, until(0.5), None, "")
        self._wait(driver, lambda: self._under_way() is not None, _SECONDS_TO_START, "a micro-batch to be killed in")
        batch = self._under_way()
        driver.kill()
        self._screen.event(f"The driver was killed by SIGKILL in micro-batch {batch}; it starts again.")
        driver = self._started(file)
        self._wait(driver, until(0.7), None, "")
        version = self._servers.products.merge(products(PRODUCTS, COLLECTION))
        shop.published = True
        self._screen.event(f"{COLLECTION} products were published: version {version} of {PRODUCTS_TABLE}.")
        self._wait(driver, until(1.0), None, "")
        shop.close()
        self._screen.event(f"The shop has closed. All {shop.sent.count:,} orders must find their way now.")
        self._drain(driver, shop)
        code = driver.stop()
        if code != 128 + signal.SIGTERM:
            raise FailedError(f"The pipeline ended with {code}: {driver.said()[-2000:]}")
        self._look()
        return self._proved(shop)

    def _shop_opened(self) -> Shop:
        from kafka import KafkaProducer

        producer = KafkaProducer(bootstrap_servers=self._servers.kafka.servers, linger_ms=20)
        self._stack.callback(producer.close, timeout=5)
        shop = Shop(producer, self._servers.customers, self._rate)
        self._stack.callback(shop.stop)
        shop.open()
        return shop

    def _started(self, file: Path) -> Driver:
        driver = Driver(file, self._folder / "pipeline.log", self._servers.environment)
        self._stack.callback(driver.kill)
        self._wait(driver, lambda: driver.page is not None, _SECONDS_TO_START, "the pipeline")
        self._screen.event(f"Live page: {driver.page}")
        return driver

    def _under_way(self) -> int | None:
        """Return the micro-batch that has begun and not ended, by the logs of Spark."""
        checkpoint = self._folder / "state" / "checkpoint"
        begun, ended = (
            {int(path.name) for path in (checkpoint / log).glob("[0-9]*")} for log in ("offsets", "commits")
        )
        return max(begun - ended, default=None)

    def _wait(self, driver: Driver, done: Callable[[], bool], seconds: float | None, what: str) -> None:
        """Wait until something is done, and tell meanwhile how things are."""
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            self._look()
            if done():
                return
            if driver.has_ended:
                raise FailedError(f"The pipeline has ended: {driver.said()[-2000:]}")
            if self._shop is not None and self._shop.error is not None:
                raise self._shop.error
            if end is not None and time.monotonic() > end:
                raise FailedError(f"Waiting for {what} took more than {seconds:g} seconds.")
            if self._shop is not None:
                self._screen.progress(self._shop, self._servers.customers, self._warehouse, self._statistics)
            time.sleep(_POLL_SECONDS)

    def _look(self) -> None:
        self._warehouse.look()
        self._statistics.look()

    def _drain(self, driver: Driver, shop: Shop) -> None:
        """Wait until each order is in the warehouse, or parked because its customer never comes."""
        wanted = shop.sent.count - shop.strangers
        seen, since = -1, time.monotonic()

        def stuck() -> bool:
            nonlocal seen, since
            if self._warehouse.rows != seen:
                seen, since = self._warehouse.rows, time.monotonic()
            return time.monotonic() > since + _SECONDS_WITHOUT_PROGRESS

        def arrived() -> bool:
            # If nothing comes any more, the proof says what is missing.
            return stuck() or (self._warehouse.rows >= wanted and self._statistics.sum("parked") == shop.strangers)

        self._wait(driver, arrived, None, "")

    @contextmanager
    def _pins_watched(self) -> Iterator[None]:
        """Write down to which version of the customers each micro-batch is pinned: only the newest pins are kept."""
        stop = threading.Event()
        customers = ss.MasterTable(self._folder / "state" / "customers")

        def watch() -> None:
            while not stop.wait(_POLL_SECONDS):
                with suppress(ss.SemistreamError):  # it may not be there yet
                    self._pins |= {pin["batch"]: pin["version"] for pin in customers.info()["pins"]}

        thread = threading.Thread(target=watch, name="pins", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _proved(self, shop: Shop) -> Proof:
        self._screen.heading("Proof", "against a batch join of the orders that were sent")
        return prove(
            shop.sent.table(),
            products(0, PRODUCTS + COLLECTION),
            self._servers.customers.history.table(),
            self._warehouse.table(),
            self._statistics.sum("parked"),
            ss.MasterTable(self._folder / "state" / "customers"),
            self._pins,
            NOBODY,
        )


def main(arguments: list[str] | None = None) -> int:
    """Run the example and return the exit code."""
    options = _options(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    screen = Screen()
    with ExitStack() as stack:
        if options.folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="semistream-retail-")))
        else:
            folder = options.folder.absolute()
            folder.mkdir(parents=True)
        try:
            with Retail(folder, options.seconds, options.rate, screen) as retail:
                proof = retail.run()
                screen.proved(proof)
        except KeyboardInterrupt:
            print("\nStopped by Ctrl-C.", file=sys.stderr)
            return 130
        except NotProvedError as error:
            print(f"NOT PROVED: {error}", file=sys.stderr)
            return 1
        except (FailedError, NotInstalledError, ss.SemistreamError) as error:
            print(error, file=sys.stderr)
            return 1
    return 0


def _leave(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run the retail example: Kafka, PostgreSQL and S3 into Delta.")
    parser.add_argument("--seconds", type=float, default=120, help="how long orders arrive after the first batch (120)")
    parser.add_argument("--rate", type=int, default=1_000, help="orders a second (1000)")
    parser.add_argument("--folder", type=Path, help="keep what is written in this new folder instead of removing it")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
