"""What master data to keep in memory, and what to give up for it."""

from semistream.policies.caching.admission import AboveRate, AboveThreshold, FrequentLately
from semistream.policies.caching.block_utility import BlockUtility
from semistream.policies.caching.cache_size import best_cache_size
from semistream.policies.caching.divided_memory import CacheWorth, divided_memory
from semistream.policies.caching.evicted_codes import EvictedCodes
from semistream.policies.caching.replacement import LeastFrequentOverwrite, LessUsedOverwrite, RandomOverwrite

__all__ = [
    "AboveRate",
    "AboveThreshold",
    "BlockUtility",
    "CacheWorth",
    "EvictedCodes",
    "FrequentLately",
    "LeastFrequentOverwrite",
    "LessUsedOverwrite",
    "RandomOverwrite",
    "best_cache_size",
    "divided_memory",
]
