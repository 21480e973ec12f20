"""What master data to keep in memory, and what to give up for it."""

from semistream.policies.caching.admission import AboveRate, AboveThreshold, FrequentLately
from semistream.policies.caching.block_utility import BlockUtility
from semistream.policies.caching.cache_size import best_cache_size
from semistream.policies.caching.divided_memory import CacheWorth, divided_memory
from semistream.policies.caching.evicted_codes import EvictedCodes
from semistream.policies.caching.page_worth import Kept, PageMemory, PageUse, best_kept
from semistream.policies.caching.replacement import LeastFrequentOverwrite, LessUsedOverwrite, RandomOverwrite

__all__ = [
    "AboveRate",
    "AboveThreshold",
    "BlockUtility",
    "CacheWorth",
    "EvictedCodes",
    "FrequentLately",
    "Kept",
    "LeastFrequentOverwrite",
    "LessUsedOverwrite",
    "PageMemory",
    "PageUse",
    "RandomOverwrite",
    "best_cache_size",
    "best_kept",
    "divided_memory",
]
