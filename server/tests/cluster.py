"""A scheduler and executors as processes on loopback: the same answers as on one machine. `server/test.sh` runs it."""
import tempfile

from harness import cluster, cpu, run, shell, table


def is_equal(one, sql, in_order=True):
    """The cluster answers as the shell does, to the last digit."""
    here, there = shell(sql), one.ask(sql)
    assert here[0] == 0 and here[1].count("\n") > 1, (sql, here)
    lines = (lambda text: text.splitlines()) if in_order else (lambda text: sorted(text.splitlines()))
    assert there[0] == 0 and lines(there[1]) == lines(here[1]), (sql, here, there)


def moments_are_gathered_where_the_files_are():
    with tempfile.TemporaryDirectory() as folder, cluster(2) as one:
        t = table(folder, "t", 40_000, 8)
        for call in [f"omp('{t}', 'y', 4)", f"omp('{t}', label => 'y', k => 3, exclude => ['g'])", f"sequential_lasso('{t}', 'y', 3)",
                     f"lasso('{t}', 'y', 3)", f"correlation('{t}', 'y', 5)"]:
            is_equal(one, f"SELECT * FROM {call}", in_order=False)
        # Where moments of groups are gathered from other batches, the last digit of a score can be another.
        is_equal(one, f"SELECT g, rank, feature, round(score, 12) AS score FROM omp('{t}', label => 'y', k => 2, partition_by => 'g') ORDER BY g, rank")
        is_equal(one, f"SELECT a.rank, a.feature, b.feature AS other FROM omp('{t}', 'y', 2) a JOIN lasso('{t}', 'y', 2) b ON a.rank = b.rank ORDER BY a.rank")
        # Moments of 1,000 columns: more than the 16 MiB that a message of Ballista's holds by default.
        wide = table(folder, "wide", 400, 999)
        is_equal(one, f"SELECT rank, feature FROM omp('{wide}', 'y', 3)")


def rows_are_gathered_on_one_executor():
    with tempfile.TemporaryDirectory() as folder, cluster(2) as one:
        t, other = table(folder, "t", 4_000, 6), table(folder, "other", 1_000, 6)
        for call in [f"random_forest('{t}', 'y', 3)", f"sequential_attention('{t}', 'y', 3, '{{\"epochs\": 5}}')",
                     f"omp((SELECT * FROM '{t}' WHERE x0 > 0), label => 'y', k => 3, reads => 'rows')",
                     f"omp('{t}', label => 'y', k => 3, folds => 4, reads => 'rows')", f"random_forest('{t}', label => 'y', k => 3, sample_rows => 500)",
                     f"random_forest('{t}', label => 'y', k => 2, features => (SELECT feature FROM omp('{t}', 'y', 4)))",
                     f"evaluate('{t}', label => 'y', model => 'linear', selector => 'omp', k => 2, folds => 3, reads => 'rows')",
                     f"evaluate('{t}', label => 'y', model => 'linear', features => ['x0', 'x1'], test => (SELECT * FROM '{other}'), reads => 'rows')",
                     f"stability_selection('{t}', label => 'y', selector => 'omp', k => 2, reads => 'rows')"]:
            is_equal(one, f"SELECT * FROM {call}")
        is_equal(one, f"SELECT rank, feature FROM random_forest('{t}', 'y', 3) WHERE rank <= 2 ORDER BY rank LIMIT 1")
        plan = one.ask(f"EXPLAIN SELECT * FROM random_forest('{t}', 'y', 3)")[1]
        assert "SelectExec" in plan and "ShuffleWriter" in plan, plan
        # Whatever a query is made of, a selection in it sees every row of its table, and is run once.
        forest = lambda seed: f"SELECT {seed} AS seed, rank, feature, score FROM random_forest('{t}', label => 'y', k => 2, seed => {seed})"
        is_equal(one, " UNION ALL ".join(forest(seed) for seed in range(3)), in_order=False)
        is_equal(one, f"SELECT a.feature, b.score FROM ({forest(1)}) a JOIN ({forest(2)}) b ON a.rank = b.rank", in_order=False)
        is_equal(one, f"SELECT count(*) AS n, sum(s.score) AS total FROM '{t}' AS t CROSS JOIN ({forest(1)}) AS s WHERE t.g = 1")
        is_equal(one, f"SELECT g, (SELECT max(score) FROM ({forest(3)})) AS best, count(*) AS n FROM '{t}' GROUP BY g", in_order=False)


def groups_are_answered_on_different_executors():
    with tempfile.TemporaryDirectory() as folder, cluster(2) as one:
        t = table(folder, "t", 6_000, 6)
        for call in [f"random_forest('{t}', label => 'y', k => 2, partition_by => 'g')",
                     f"sequential_attention('{t}', label => 'y', k => 2, epochs => 3, partition_by => 'g')",
                     f"random_forest((SELECT *, x0 > 0 AS h FROM '{t}'), label => 'y', k => 2, partition_by => ['g', 'h'])"]:
            is_equal(one, f"SELECT * FROM {call}", in_order=False)
            plan = one.ask(f"EXPLAIN SELECT * FROM {call}")[1]
            assert "by_group" in plan, plan
        is_equal(one, f"SELECT * FROM random_forest('{t}', label => 'y', k => 2, partition_by => 'g') ORDER BY g, rank LIMIT 3")
        nothing = f"SELECT * FROM random_forest((SELECT * FROM '{t}' WHERE x0 > 5), label => 'y', k => 2, partition_by => 'g')"
        assert one.ask(nothing)[:2] == shell(nothing)[:2], (one.ask(nothing), shell(nothing))
        # A file is read by one, and all groups are answered there.
        is_equal(one, f"SELECT * FROM random_forest('{t}0.parquet', label => 'y', k => 2, partition_by => 'g')")


def every_executor_is_at_work(one, sql):
    before = [cpu(process) for process in one.executors]
    is_equal(one, sql, in_order=False)
    worked = [cpu(process) - before for process, before in zip(one.executors, before)]
    assert min(worked) >= 0.05, (sql, worked)


def folds_resamples_and_seeds_run_on_different_executors():
    with tempfile.TemporaryDirectory() as folder, cluster(2) as one:
        t, long = table(folder, "t", 6_000, 6), table(folder, "long", 300_000, 20)
        repeated = f"FROM '{t}' AS t CROSS JOIN (VALUES (0), (1), (2), (3)) AS r(run)"
        folds = f"SELECT t.*, r.run {repeated} WHERE CAST(abs(t.x0) * 1000000 AS BIGINT) % 4 <> r.run"
        halves = f"SELECT t.*, r.run {repeated} WHERE md5(concat(t.x0, '-', r.run)) < '8'"
        for rows in [folds, halves]:
            every_executor_is_at_work(one, f"SELECT * FROM random_forest(({rows}), label => 'y', k => 2, partition_by => 'run')")
        forest = lambda seed: f"SELECT {seed} AS seed, rank, feature, score FROM random_forest('{t}', label => 'y', k => 2, seed => {seed})"
        every_executor_is_at_work(one, " UNION ALL ".join(forest(seed) for seed in range(4)))
        for call, shares in [(f"random_forest('{t}', label => 'y', k => 2, folds => 5)", 4), (f"random_forest('{t}', label => 'y', k => 2, folds => 2)", 3),
                             (f"selection_path('{t}', label => 'y', k => 2, selector => 'random_forest', folds => 3)", 4),
                             (f"stability_selection('{t}', label => 'y', k => 2, selector => 'random_forest', resamples => 8)", 4),
                             (f"evaluate('{t}', label => 'y', model => 'mlp', epochs => 20, seeds => 16)", 4),
                             (f"evaluate('{t}', label => 'y', model => 'forest', selector => 'omp', k => 2, folds => 3)", 3)]:
            every_executor_is_at_work(one, f"SELECT * FROM {call}")
            # A plan that is only shown is made for the shell's machine.
            plan = one.ask(f"SET datafusion.execution.target_partitions = 4; EXPLAIN SELECT * FROM {call}")[1]
            assert f"shares={shares}" in plan, plan
        compared = f"compare_selectors('{t}', label => 'y', k => 2, selectors => ['random_forest', 'boosting', 'omp'])"
        every_executor_is_at_work(one, f"SELECT * EXCLUDE (seconds) FROM {compared}")
        # As many tasks as the executors take, whatever machine the shell is on.
        every_executor_is_at_work(one, f"SET datafusion.execution.target_partitions = 1; SELECT * FROM omp('{long}', 'y', 3)")


def mistakes_are_said_as_the_shell_says_them():
    with tempfile.TemporaryDirectory() as folder, cluster(1) as one:
        t = table(folder, "t", 2_000, 6)
        nothing = f"(SELECT * FROM '{t}' WHERE x0 > 5)"
        for sql, part in [(f"SELECT * FROM random_forest({nothing}, label => y, k => 2)", "random_forest: the table has no rows"),
                          (f"SELECT * FROM omp({nothing}, label => y, k => 2)", "omp: the table has no rows"),
                          (f"SELECT * FROM random_forest('{t}', 'nothing', 2)", "random_forest: no column `nothing`"),
                          (f"SELECT * FROM random_forest('{t}', label => y, k => 2, max_memory => '1KB')", "max_memory"),
                          (f"SELECT CAST(concat('\"»', g) AS INT) AS a FROM '{t}' WHERE g = 1", "'\"»1'"),
                          (f"SELECT 1 / (g - g) AS a FROM '{t}'", "Divide by zero")]:
            here, there = shell(sql), one.ask(sql)
            assert here[0] != 0 and part in here[2] and here[2].count("\n") == 1 and there == here, (here, there)


def what_only_the_shell_has_stays_there():
    with tempfile.TemporaryDirectory() as folder, cluster(1) as one:
        t = table(folder, "t", 2_000, 5)
        is_equal(one, "SELECT feature FROM omp('sample.diabetes', 'label', 2)")
        is_equal(one, f"SELECT * FROM sequential_attention('{t}', label => y, k => 2, passes => 'one')")
        is_equal(one, f"SELECT s.feature FROM omp('{t}', 'y', 1) AS s JOIN omp('sample.diabetes', 'label', 1) AS d ON s.rank = d.rank")
        is_equal(one, f"SELECT * FROM predict((SELECT * FROM '{t}' LIMIT 5), model => (SELECT * FROM fit('{t}', label => y)))", in_order=False)


def rows_that_do_not_fit_are_said():
    with tempfile.TemporaryDirectory() as folder, cluster(1, "--memory-limit", "16MB") as one:
        t = table(folder, "t", 300_000, 6)
        status, _, error = one.ask(f"SELECT * FROM sequential_attention('{t}', 'y', 2, '{{\"epochs\": 1}}')")
        assert status != 0 and "sample_rows" in error and "passes => 'one'" in error, error
        status, _, error = one.ask(f"SELECT * FROM sequential_attention('{t}', 'y', 2, '{{\"epochs\": 1, \"sample_rows\": 1000}}')")
        assert status == 0, error


def mistakes_of_whoever_asks_are_said():
    status, _, error = shell("SELECT 1 AS a", "--cluster", "nonsense")
    assert status != 0 and "df://" in error, error
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write("a\n1\n")
        file.flush()
        status, _, error = shell(f"SELECT a FROM '{file.name}'", "--cluster", "df://127.0.0.1:1")
        assert status != 0 and error, error


run([moments_are_gathered_where_the_files_are, rows_are_gathered_on_one_executor, groups_are_answered_on_different_executors,
     folds_resamples_and_seeds_run_on_different_executors, mistakes_are_said_as_the_shell_says_them,
     what_only_the_shell_has_stays_there, rows_that_do_not_fit_are_said, mistakes_of_whoever_asks_are_said])
