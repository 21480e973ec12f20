"""The servers of the shop on 127.0.0.1, with its master tables: PostgreSQL, Kafka and S3."""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import s3_server
from kafka_broker import KafkaBroker
from postgresql_server import PostgresqlServer, started_server
from s3_server import S3Server
from server_process import NotInstalledError, ServerProcess, needed_jars, server_folder, servers_folder
from shop import CUSTOMERS, PRODUCTS, TOPIC, Customers, products

import semistream as ss

if TYPE_CHECKING:
    from screen import Screen

PIPELINE = Path(__file__).parent / "pipeline.toml"
PRODUCTS_TABLE = f"s3://{s3_server.BUCKET}/products"
PARTITIONS = 4


class ShopServers:
    """All servers, which are stopped at the end of the block, the last that was started first."""

    kafka: KafkaBroker
    customers: Customers
    products: ss.MasterTable

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._stack = ExitStack()
        self.environment = {**os.environ, "SEMISTREAM_JARS": str(servers_folder())}
        """What the pipeline needs in its environment."""

    def __enter__(self) -> ShopServers:
        """Start them, and fill the master tables."""
        try:
            for jars in ("kafka", "delta"):
                needed_jars(jars)
            if s3_server.installed() is None:
                raise NotInstalledError("The S3 server is not installed: run `make servers`.")
            self._start()
            self._fill()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start(self) -> None:
        self._screen.heading("Servers", "on 127.0.0.1, in temporary folders")
        password = secrets.token_hex(16)
        with self._screen.step("PostgreSQL", "customers") as tell:
            self._postgresql: PostgresqlServer = started_server(password)
            self._stack.callback(self._postgresql.stop)
            tell(f"port {self._postgresql.port}")
        with self._screen.step("Kafka", "orders") as tell:
            self.kafka = KafkaBroker(partitions=PARTITIONS)
            self._stack.callback(self.kafka.stop)
            self.kafka.start()
            self.kafka.create(TOPIC, partitions=PARTITIONS)
            tell(f"port {self.kafka.port}")
        with self._screen.step("S3", "products") as tell:
            s3 = S3Server.planned()
            process = ServerProcess(s3.command, server_folder("s3", None))
            self._stack.callback(process.stop)
            process.start(s3.answers)
            s3.make_bucket()
            tell(f"port {s3.port}")
        keys = {"AWS_ACCESS_KEY_ID": "shop", "AWS_SECRET_ACCESS_KEY": s3.secret, **s3.settings}
        os.environ.update(keys)  # products are published by this process
        self.environment |= {
            **keys,
            "KAFKA_SERVERS": self.kafka.servers,
            "CUSTOMERS": f"postgresql://postgres@127.0.0.1:{self._postgresql.port}/postgres?table=customers",
            "PGPASSWORD": password,
        }

    def _fill(self) -> None:
        self._screen.heading("Master tables")
        with self._screen.step("Customers", f"{CUSTOMERS:,} rows in PostgreSQL") as tell:
            self.customers = Customers(self._postgresql.connect)
            self._stack.callback(self.customers.close)
            self.customers.load()
            tell("loaded")
        with self._screen.step("Products", f"{PRODUCTS:,} rows in {PRODUCTS_TABLE}") as tell:
            self.products = ss.MasterTable.build(products(0, PRODUCTS), PRODUCTS_TABLE, key="sku")
            tell("built")
