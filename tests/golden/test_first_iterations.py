"""The first iterations of each algorithm, worked out by hand from its paper, on the trace of `small_trace`.

Read a table as: what waits before the read (stream position:key) → the page that the paper's rule chooses → positions
answered → positions that enter next. Positions 0 to 5 are the keys 17 3 38 18 3 9.
"""

from __future__ import annotations

from small_trace import STREAM, Trace, run_trace


def begins_with(trace: Trace, *reads: tuple[int, int]) -> None:
    """Assert the first reads of the disk phase: the page, and how many tuples it answered."""
    assert trace.served[: len(reads)] == list(reads)


def test_inlj_reads_a_page_for_every_tuple_in_order() -> None:
    # 0:17 → page 4; 1:3 → page 0; 2:38 → page 9; 3:18 → page 4 again; and so on.
    trace = run_trace("inlj", parameters={"batch": 1})
    begins_with(trace, (4, 1), (0, 1), (9, 1), (4, 1), (0, 1), (2, 1))


def test_inlj_looks_up_few_tuples_in_one_turn_but_still_once_each() -> None:
    # Three at a time, by age of their pages: 0:17 1:3 2:38 → 4 0 9; 3:18 4:3 5:9 → 4 0 2; 6:20 7:2 8:3 → 4 0 0.
    trace = run_trace("inlj", parameters={"batch": 3})
    assert trace.pages[:9] == [4, 0, 9, 4, 0, 2, 4, 0, 0]
    assert trace.stats.page_reads == len(STREAM)


def test_meshjoin_passes_every_page_and_takes_an_equal_part_each_time() -> None:
    # h_S = 20 slots, 10 pages, so w = 2 enter per iteration and the pages come in turn.
    # enter          waits                                page  answered
    # 0:17 1:3       17 3                                 0     1
    # 2:38 3:18      17 38 18                             1     none
    # 4:3 5:9        17 38 18 3 9                         2     5
    # 6:20 7:2       17 38 18 3 20 2                      3     none
    # 8:3 9:40       17 38 18 3 20 2 3 40                 4     0 3 6
    trace = run_trace("meshjoin", slots=20, parameters={"parts": 10})
    begins_with(trace, (0, 1), (1, 0), (2, 1), (3, 0), (4, 3))
    assert trace.entered[:5] == [2, 4, 6, 8, 10]


def test_r_meshjoin_does_so_with_a_disk_buffer_of_its_own_size() -> None:
    # Reads of two pages, so five page groups and w = 4.
    # 0:17 1:3 2:38 3:18 → pages 0 and 1 → 1.     4:3 5:9 6:20 7:2 → pages 2 and 3 → 5.
    # 8:3 9:40 10:5 11:3 → pages 4 and 5 → 0 3 6. 12:25 13:4 14:17 15:12 → pages 6 and 7 → 12.
    trace = run_trace("r-meshjoin", slots=20, parameters={"read_bytes": 800})
    assert trace.reads[:4] == [(0, 1), (2, 3), (4, 5), (6, 7)]
    begins_with(trace, (0, 1), (1, 1), (2, 3), (3, 1))


def test_partitioned_join_reads_a_page_when_its_slot_has_two() -> None:
    # A slot may hold 2 before its page is read; one page stays in memory, the one that served most.
    # 0:17 1:3 2:38 wait alone. 3:18 is the second for page 4 → read → 0 3; page 4 stays (served 2).
    # 4:3 is the second for page 0 → read → 1 4; page 0 (2) is not above page 4 (2).
    # 5:9 waits. 6:20 is answered by page 4 in memory (3). 7:2 waits, 8:3 is the second for page 0 → read → 7 8;
    # page 0 (4) takes the place of page 4. 9:40 is the second for page 9 → read → 2 9. 10:5 waits, 11:3 is answered.
    trace = run_trace("partitioned", parameters={"trickle": 0}, cache_blocks=1)
    begins_with(trace, (4, 2), (0, 2), (0, 2), (9, 2))


def test_ssij_joins_its_whole_buffer_before_it_takes_more() -> None:
    # 0:17 1:3 2:38 3:18 4:3 5:9 fill the buffer → page 4 → 0 3; page 0 → 1 4; page 9 → 2; page 2 → 5. Empty.
    # Page 4 was read first and stays; page 0 served as many, not more.
    # 6:20 is answered by page 4. 7:2 8:3 9:40 10:5 11:3 12:25 fill the buffer → page 0 → 7 8 11; 9 → 9; 1 → 10; 6 → 12.
    trace = run_trace("ssij", cache_blocks=1)
    begins_with(trace, (4, 2), (0, 2), (9, 1), (2, 1), (0, 3), (9, 1), (1, 1), (6, 1))
    assert trace.waiting[3] == trace.waiting[7] == 0


def test_hybridjoin_reads_the_page_of_the_oldest_tuple() -> None:
    # waits                           oldest   page  answered  enter
    # 17 3 38 18 3 9                  0:17     4     0 3       6:20 7:2
    # 3 38 3 9 20 2                   1:3      0     1 4 7     8:3 9:40 10:5
    # 38 9 20 3 40 5                  2:38     9     2 9       11:3 12:25
    # 9 20 3 5 3 25                   5:9      2     5         13:4
    # 20 3 5 3 25 4                   6:20     4     6         14:17
    # 3 5 3 25 4 17                   8:3      0     8 11 13   15:12 16:3 17:33
    trace = run_trace("hybridjoin")
    begins_with(trace, (4, 2), (0, 3), (9, 2), (2, 1), (4, 1), (0, 3))
    assert trace.entered[:6] == [6, 8, 11, 13, 14, 15]


def test_x_hybridjoin_answers_from_its_pinned_page_before_each_read() -> None:
    # Page 0 is read once before the start and pinned.
    # waits               pinned answers   oldest  page  answered  enter
    # 17 3 38 18 3 9      1 4              0:17    4     0 3       6:20 7:2 8:3 9:40
    # 38 9 20 2 3 40      7 8              2:38    9     2 9       10:5 11:3 12:25 13:4
    # 9 20 5 3 25 4       11 13            5:9     2     5         14:17 15:12 16:3
    # 20 5 25 17 12 3     16               6:20    4     6 14      17:33 18:1 19:19
    trace = run_trace("x-hybridjoin", cache_blocks=1)
    assert trace.pages[0] == 0
    assert 0 not in trace.pages[1:]
    begins_with(trace, (4, 2), (9, 2), (2, 1), (4, 2))
    assert trace.entered[:4] == [6, 10, 14, 17]


def test_optimised_x_hybridjoin_lets_only_misses_wait() -> None:
    # The first two master tuples, keys 1 and 2, are hashed before the start; their page is read once for that.
    # waits               oldest  page  answered  arrive
    # 17 3 38 18 3 9      0:17    4     0 3       6:20, 7:2 hits, 8:3
    # 3 38 3 9 20 3       1:3     0     1 4 8     9:40 10:5 11:3
    # 38 9 20 40 5 3      2:38    9     2 9       12:25 13:4
    # 9 20 5 3 25 4       5:9     2     5         14:17
    trace = run_trace("optimised-x-hybridjoin", cache_tuples=2)
    assert trace.pages[0] == 0
    begins_with(trace, (4, 2), (0, 3), (9, 2), (2, 1))
    assert trace.stats.cache_hits == sum(key in (1, 2) for key in STREAM)


def test_cachejoin_caches_a_tuple_that_matched_above_the_threshold_in_one_read() -> None:
    # Threshold 1. As HYBRIDJOIN until the read of page 0 answers 1:3 and 4:3: key 3 matched twice and is cached.
    # 38 9 20 then get 8:3 (hit) 9:40 10:5 11:3 (hit) 12:25 → 2:38 → page 9 → 2 9 → 13:4 14:17 → 5:9 → page 2 → 5
    # → 15:12, 16:3 (hit) → 6:20 → page 4 → 6 14.
    for algorithm in ("cachejoin", "sscj"):
        trace = run_trace(algorithm, cache_tuples=1, parameters={"threshold": 1})
        begins_with(trace, (4, 2), (0, 3), (9, 2), (2, 1), (4, 2))
        assert trace.stats.cache_hits == STREAM[8:].count(3)


def test_the_early_look_up_takes_the_key_at_its_position_from_the_young_end() -> None:
    # 30% of six tuples from the young end: the one before the youngest.
    # waits               looked up  page  answered  enter
    # 17 3 38 18 3 9      4:3        0     1 4       6:20 7:2
    # 17 38 18 9 20 2     6:20       4     0 3 6     8:3 9:40 10:5
    # 38 9 2 3 40 5       9:40       9     2 9       11:3 12:25
    # 9 2 3 5 3 25        11:3       0     7 8 11    13:4 14:17 15:12
    trace = run_trace("hybridjoin-l")
    begins_with(trace, (0, 2), (4, 3), (9, 2), (0, 3))


def test_the_early_look_up_with_a_cache() -> None:
    # As above, but the first read caches key 3 (two matches, threshold 1), so 8:3 and 11:3 hit.
    # 38 9 2 and 9:40 10:5 12:25 wait → the one before the youngest is 10:5 → page 1 → 10 → 13:4
    # 38 9 2 40 25 4 → 12:25 → page 6 → 12 → 14:17 → 38 9 2 40 4 17 → 13:4 → page 0 → 7 13
    trace = run_trace("cachejoin-l", cache_tuples=1, parameters={"threshold": 1})
    begins_with(trace, (0, 2), (4, 3), (1, 1), (6, 1), (0, 2))


def test_a_frequent_page_is_read_when_it_is_due() -> None:
    # With entry 1 a page is frequent once its matches are above the mean of the reads.
    # Read 1: page 4, 2 matches, mean 2, not above. Read 2: page 0, 3 matches, mean 2 + 1/256: frequent, f = 3, due in
    # 2 * mean * 6 / 3 = 8 more tuples. 8 have entered, so it is due at 16.
    # Reads 3, 4, 5: pages 9 2 4 as HYBRIDJOIN, 11, 13, 14 entered. Read 6 (15 entered): not due; the oldest is 8:3, so
    # page 0 is read because of its age → 8 11 13. Read 7 (18 entered): page 0 is due and 16:3 waits → page 0 → 16.
    trace = run_trace("hybridjoin-pq", parameters={"entry": 1})
    begins_with(trace, (4, 2), (0, 3), (9, 2), (2, 1), (4, 1), (0, 3), (0, 1))
    assert trace.entered[:7] == [6, 8, 11, 13, 14, 15, 18]


def test_without_a_frequent_page_the_oldest_decides() -> None:
    # Twice the mean, as shipped, is more than any page of this trace brings in its first reads.
    assert run_trace("hybridjoin-pq").pages[:12] == run_trace("hybridjoin").pages[:12]


def test_the_phases_side_by_side_meet_in_a_buffer_of_four() -> None:
    # The stream phase fills the buffer: 0:17 1:3 2:38 3:18. Then in each round the disk phase moves the buffer into the
    # queue and reads, while the stream phase fills the buffer again.
    # moves               waits            oldest  page  answered  the buffer gets meanwhile
    # 17 3 38 18          17 3 38 18       0:17    4     0 3       4:3 5:9 6:20 7:2
    # 3 9 20 2            3 38 3 9 20 2    1:3     0     1 4 7     8:3 and 11:3 hit (key 3 is cached), 40 5 25 4
    # 40 5 25             38 9 20 40 5 25  2:38    9     2 9       14:17 …
    # 4 17                9 20 5 25 4 17   5:9     2     5
    trace = run_trace("p-cachejoin", cache_tuples=1, handover_slots=4, parameters={"threshold": 1})
    begins_with(trace, (4, 2), (0, 3), (9, 2), (2, 1))


def test_two_buffers_serve_the_two_ends_of_the_queue_in_turn() -> None:
    # The oldest first: 0:17 → page 4 → 0 3. Then the youngest: 3 38 3 9 20 2 → 7:2 → page 0 → 1 4 7. Then the oldest:
    # 38 9 20 40 5 25 → 2:38 → page 9 → 2 9. Then the youngest: 9 20 5 25 4 17 → 14:17 → page 4 → 6 14.
    trace = run_trace("op-cachejoin", cache_tuples=1, handover_slots=4, parameters={"threshold": 1})
    begins_with(trace, (4, 2), (0, 3), (9, 2), (4, 2))


def test_the_oracle_reads_the_table_once_and_then_nothing() -> None:
    trace = run_trace("oracle")
    assert trace.pages == list(range(10))
    assert trace.stats.cache_hits == len(STREAM)
