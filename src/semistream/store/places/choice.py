"""Which place an address means."""

from __future__ import annotations

import os
from typing import TypeAlias

from semistream.store.address import DATABASES, LOCAL, Address, not_there, only_read
from semistream.store.places.disk_tier import tier_of_process
from semistream.store.places.local_folder import LocalFolder
from semistream.store.places.object_store import ObjectStore
from semistream.store.places.place import Place
from semistream.store.places.tiered_place import TieredPlace

OBJECT_STORES = ("s3", "gs", "az")
PlaceOrAddress: TypeAlias = Place | Address | str | os.PathLike[str]


def place_of(where: PlaceOrAddress) -> Place:
    """Return the place at an address, or the place that is given."""
    if isinstance(where, Place):
        return where
    address = Address.of(where)
    if address.scheme == LOCAL:
        return LocalFolder(address.path)
    if address.scheme in OBJECT_STORES:
        return ObjectStore(address)
    raise only_read() if address.scheme in DATABASES else not_there(address.scheme)


def tiered(place: Place, budget_bytes: int) -> Place:
    """Return a place with a tier on the local disk, unless its objects are files of this machine already."""
    return place if place.promises.lends_descriptors else TieredPlace(place, tier_of_process(budget_bytes))
