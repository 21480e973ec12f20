"""Makes a running join from a recipe, a master table and a memory budget."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from semistream.core.budget import MemoryBudget, format_bytes_up
from semistream.core.clock import Clock
from semistream.core.costs import SSD
from semistream.core.errors import BudgetTooSmallError, InvalidSettingError
from semistream.core.measured_costs import MeasuredCosts
from semistream.core.stats import JoinStats
from semistream.core.value_widths import fixed_width
from semistream.engine.cache.balance import MemoryBalance
from semistream.engine.cache.cache_stage import CacheStage
from semistream.engine.cache.kept_pages import KeptPages, part_page_groups
from semistream.engine.cache.recipe_cache import ONE_IN, CacheSpace, new_cache_stage
from semistream.engine.loop import JoinLoop
from semistream.engine.loop_parts import LoopParts
from semistream.engine.output.output import DeadLetters, Output
from semistream.engine.output.output_plan import OutputPlan
from semistream.engine.phases.stream_input import StreamInput
from semistream.engine.reading.group_reader import PageGroupReader
from semistream.engine.reading.overlapping_page_groups import OverlappingPageGroups
from semistream.engine.reading.page_groups import PageGroups
from semistream.engine.recipe import Phases, Recipe, Setting
from semistream.engine.rows.slot_rows import SlotRows
from semistream.engine.rows.stream_rows import StreamRows
from semistream.engine.sizing.memory_advice import memory_needed
from semistream.engine.sizing.papers_accounting import papers_sizes
from semistream.engine.sizing.real_accounting import real_sizes
from semistream.engine.sizing.settled_split import Circumstances, SettledSplit, settled
from semistream.engine.sizing.sizes import ROW_SHARE, Sizes
from semistream.engine.sizing.table_sizes import mean_page_bytes, table_bytes, variable_bytes
from semistream.engine.waiting.staying_tuples import StayingTuples
from semistream.engine.waiting.waiting_for_ranges import WaitingForRanges
from semistream.engine.waiting.waiting_tuples import WaitingTuples
from semistream.policies.contract import PageChoice, Staying
from semistream.store.contract import MasterStore

_ADMITTED_SHARE = 32
"""Copies of rows that enter the cache together may take one part in so many of the memory."""
_MIN_VARIABLE_BYTES = 32.0
"""Strings of the first rows may be short by chance: room is made for so much in each variable column at least."""


class Assembly:
    """The parts of one join: sizes, reader, statistics, and once it has been started what its runs share.

    `accounting` "real" counts the bytes we allocate, "papers" the bytes the papers would. `plan` is None for a join of
    bare keys, whose matches are only counted. With `finish_by_demand`, what waits at the end of the input is answered
    by reads of just the pages it needs. `cache` is what an earlier join of the same table, recipe and columns cached.
    `partitions` says what a read for a key brings: "aligned" the fixed partition of the table that has the key,
    "from-key" as many pages from the key's page on.
    """

    def __init__(
        self,
        recipe: Recipe,
        store: MasterStore,
        budget: MemoryBudget,
        clock: Clock,
        *,
        accounting: str = "real",
        plan: OutputPlan | None = None,
        stream_schema: pa.Schema | None = None,
        stream_row_bytes: float = 0.0,
        dead_letters: DeadLetters | None = None,
        seed: int = 0,
        parameters: Mapping[str, float] | None = None,
        finish_by_demand: bool = False,
        cache: CacheStage | None = None,
        partitions: str = "aligned",
    ) -> None:
        if not store.capabilities.pages:
            raise InvalidSettingError(
                f"{recipe.name} would read pages, and a table whose keys have no order in its database has none: "
                f"choose demandjoin with order 'input', or copy the table with MasterTable.build."
            )
        if partitions not in ("aligned", "from-key"):
            raise InvalidSettingError(f"{partitions!r} is not a way to part the table: choose aligned or from-key.")
        self.recipe = recipe
        self._overlaps = partitions == "from-key" and recipe.loads_by_key
        self.stats = JoinStats()
        self.clock = clock
        self.budget = budget
        self.plan = plan
        self._stream_schema = stream_schema
        self._stream_row_bytes = stream_row_bytes
        self._dead_letters = dead_letters
        self._output: Output | None = None
        self._store = store
        self.values = recipe.values(parameters)
        self._running = recipe.running(self.values)
        self._costs = clock.model.costs if clock.model is not None else SSD
        phases = self._running.phases
        self._side_by_side = phases is Phases.SIDE_BY_SIDE or (phases is Phases.BY_CLOCK and clock.model is not None)
        self._columns = plan.taken_columns(verify=not store.codec.exact) if plan else ()
        self._cached_schema = pa.schema([store.schema.field(name) for name in self._columns])
        self.largest_row_bytes = budget.total_bytes // ROW_SHARE
        """What a stream row, or a page of the master table, may take."""
        try:
            self._settled, self.sizes = self._divided(budget, accounting)
        except BudgetTooSmallError as error:
            raise self._advised(error, accounting) from None
        self._finish_bytes = 0
        if finish_by_demand:  # by then no other read is under way and no input comes
            held = budget.by_component()
            self._finish_bytes = held["disk buffer"] + held["input"]
        largest_bytes = self.largest_row_bytes if plan is not None else None
        group = OverlappingPageGroups if self._overlaps else PageGroups
        page_groups = group(store, self.sizes.pages_per_read, largest_bytes=largest_bytes)
        self.reader = PageGroupReader(store, page_groups, clock, self.stats)
        self._seed = seed
        self.cache = cache
        self._shared: LoopParts | None = None
        self.stats.memory_bytes = budget.by_component()

    def start(self, stream: StreamInput, *, staying: StayingTuples | None = None) -> tuple[JoinLoop, Output | None]:
        """Return the loop over an input, and where its output rows appear if it has a plan.

        May be called again once all tuples of the run before have left, and what stayed has been taken: caches and what
        policies have learned stay.
        """
        parts = self._shared_parts()
        slots = max(1, self.sizes.handover_slots) if self._side_by_side else None
        shares_probes = self._running.shares_probes
        loop = JoinLoop(stream, parts, handover_slots=slots, shares_probes=shares_probes, staying=staying)
        return loop, parts.output

    def staying(self, policy: Staying, since: str) -> StayingTuples:
        """Return what keeps the tuples of a run that stay; the column `since` says when each first came."""
        parts = self._shared_parts()
        assert parts.stream_rows is not None, "bare keys have no rows that could stay"
        assert not self._overlaps, "what stays is decided partition by partition"
        return StayingTuples(policy, parts.stream_rows, since, parts.waiting.page_group_count)

    @property
    def dead_letters(self) -> DeadLetters | None:
        """What takes the rows that are too large for the memory."""
        return self._dead_letters

    @dead_letters.setter
    def dead_letters(self, taker: DeadLetters | None) -> None:
        self._dead_letters = taker
        if self._output is not None:
            self._output.dead_letters = taker

    def shared_cache(self) -> CacheStage | None:
        """Return the cache that all runs share."""
        self._shared_parts()
        return self.cache

    def _shared_parts(self) -> LoopParts:
        if self._shared is None:
            self._shared = self._parts()
        return self._shared

    def _parts(self) -> LoopParts:
        sizes, store = self.sizes, self._store
        setting = Setting(
            page_group_count=max(1, self.reader.page_group_count),
            waiting_slots=sizes.waiting_slots,
            row_count=max(1, store.row_count),
            seed=self._seed,
            values=self.values,
            costs=self._costs,
            page_group_bytes=mean_page_bytes(store) * sizes.pages_per_read,
            run_page_groups=sizes.run_page_groups,
            cache_tuples=sizes.cache_tuples,
        )
        choice = self.recipe.page_choice(setting)
        self._settled.split.check_serves(self.recipe.name, choice)
        rows = output = None
        if self.plan is not None and self._stream_schema is not None:
            slots = sizes.waiting_slots + sizes.handover_slots + sizes.output_slots
            rows = StreamRows(self._stream_schema, slots, sizes.variable_bytes)
            output = self._output = Output(
                self.plan,
                rows,
                store.codec,
                unique=store.unique,
                batch_bytes=sizes.output_bytes,
                max_slots=max(1, sizes.output_slots // 2),
                dead_letters=self._dead_letters,
            )
        if self.cache is None:
            self.cache = self._new_cache(setting)
        else:
            self.cache.count_in(self.stats)
        waiting = self._waiting(choice)
        is_measured = self.clock.model is None and self._running.measures_reads
        costs, runs = setting.costs, self._settled.runs
        read_costs = MeasuredCosts((costs.seek_seconds, 1 / costs.bytes_per_second)) if is_measured else None
        return LoopParts(
            waiting=waiting,
            reader=self.reader,
            choice=choice,
            intake=self.recipe.intake(setting),
            cache=self.cache,
            clock=self.clock,
            stats=self.stats,
            output=output,
            stream_rows=rows,
            balance=self._balance(waiting),
            finish_bytes=self._finish_bytes,
            run_bytes=sizes.run_bytes if self.plan is not None else 0,
            in_flight=self._running.in_flight,
            reads_ahead=runs.reads_ahead if runs else 1,
            read_costs=read_costs,
        )

    def _waiting(self, choice: PageChoice) -> WaitingTuples:
        page_groups, slots = self.reader.page_groups, self.sizes.waiting_slots
        positions, youngest = choice.needs_positions, choice.needs_youngest
        if isinstance(page_groups, OverlappingPageGroups):
            return WaitingForRanges(page_groups.last, slots, positions=positions, youngest=youngest)
        return WaitingTuples(page_groups.count, slots, positions=positions, youngest=youngest, since=choice.needs_since)

    def _balance(self, waiting: WaitingTuples) -> MemoryBalance | None:
        """Return what moves memory between cached and waiting tuples; rows have a fixed place, so bare keys only."""
        cache, sizes = self.cache.resizable if self.cache is not None else None, self.sizes
        if not self._running.balances or self.plan is not None or cache is None:
            return None
        return MemoryBalance(
            cache,
            waiting,
            entry_bytes=sizes.cached_bytes,
            waiting_bytes=sizes.waiting_bytes,
            page_group_bytes=sizes.kept_page_group_bytes,
        )

    def _kept_pages(self, setting: Setting) -> KeptPages | None:
        """Return what holds parts of the table as a whole; only where each code has one row, and whole pages come."""
        store, costs = self._store, setting.costs
        if not self._running.keeps_pages or self.plan is not None or self._finish_bytes or self.sizes.holds_table:
            return None
        if not store.unique or not store.codec.exact or not store.row_count:
            return None
        part = part_page_groups(
            setting.page_group_count, setting.page_group_bytes, costs.seek_seconds * costs.bytes_per_second
        )
        return KeptPages(setting.page_group_count, part, store.row_count / setting.page_group_count)

    def _divided(self, budget: MemoryBudget, accounting: str) -> tuple[SettledSplit, Sizes]:
        """Divide a budget among the parts of the join."""
        circumstances = Circumstances(
            memory=budget.total_bytes,
            table_bytes=table_bytes(self._store),
            accounting=accounting,
            costs=self._costs,
            on_model_clock=self.clock.model is not None,
            side_by_side=self._side_by_side,
            has_rows=self.plan is not None,
        )
        split = settled(self.recipe.split(self.values), circumstances)
        return split, self._sizes(split, budget, accounting)

    def _advised(self, error: BudgetTooSmallError, accounting: str) -> BudgetTooSmallError:
        """Return the error with the memory that would be enough, found by trying."""

        def fits(memory: int) -> bool:
            try:
                self._divided(MemoryBudget(memory), accounting)
            except BudgetTooSmallError:
                return False
            return True

        enough = memory_needed(fits, self.budget.total_bytes)
        return BudgetTooSmallError(
            f"{str(error).removesuffix('.')}: give at least about {format_bytes_up(enough)}.", enough
        )

    def _sizes(self, split: SettledSplit, budget: MemoryBudget, accounting: str) -> Sizes:
        if accounting == "papers":
            return papers_sizes(split, self._store, budget, self._stream_row_bytes)
        if accounting == "real":
            return real_sizes(
                split,
                self._store,
                budget,
                slot_bytes=StreamRows.slot_bytes(self._stream_schema) if self._stream_schema is not None else 0,
                stream_row_bytes=self._stream_row_bytes,
                stream_variable_bytes=self._stream_variable_bytes(),
                largest_variable_bytes=self._bytes_for_row(budget.total_bytes // ROW_SHARE),
                cached_slot_bytes=SlotRows.slot_bytes(self._cached_schema),
                cached_variable_bytes=variable_bytes(self._store, self._columns),
                listed_by_page=self._overlaps,
            )
        raise InvalidSettingError(f"{accounting!r} is not a way to account for memory: choose real or papers.")

    def _stream_variable_bytes(self) -> float:
        if self._stream_schema is None:
            return 0.0
        widths = [fixed_width(field.type) for field in self._stream_schema]
        min_bytes = _MIN_VARIABLE_BYTES * widths.count(None)
        return max(min_bytes, self._stream_row_bytes - sum(width or 0 for width in widths)) if min_bytes else 0.0

    def _bytes_for_row(self, row_bytes: int) -> int:
        return SlotRows.bytes_for(self._stream_schema, row_bytes) if self._stream_schema is not None else 0

    def _new_cache(self, setting: Setting) -> CacheStage | None:
        sizes, page_groups = self.sizes, self.reader.page_groups
        space = CacheSpace(
            tuples=sizes.cache_tuples,
            variable_bytes=sizes.cache_variable_bytes,
            bytes_at_once=max(1, self.budget.total_bytes // _ADMITTED_SHARE),
            holds_table=sizes.holds_table,
            kept=self._kept_pages(setting),
            blocks=sizes.cache_blocks,
            blocks_bytes=sizes.cache_bytes,
            slots_per_block=sizes.slots_per_block,
        )
        return new_cache_stage(
            self.recipe,
            setting,
            space,
            store=self._store,
            columns=self._cached_schema,
            stats=self.stats,
            one_in=1 if self.clock.model is not None or self._side_by_side else ONE_IN,
            overlapping=page_groups if isinstance(page_groups, OverlappingPageGroups) else None,
        )
