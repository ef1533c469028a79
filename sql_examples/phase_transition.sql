-- How many rows does it take to find a law? Twenty tables of each size, and the share of them in which exactly the right features are found.
-- Expect a jump from rarely to always within a few dozen rows.
WITH found AS (
    SELECT 20 AS rows, * FROM ngp((SELECT * FROM sample_problem('gravitation', 20, 1, '{"runs": 20}')), label => label, k => 3, partition_by => run)
    UNION ALL
    SELECT 40, * FROM ngp((SELECT * FROM sample_problem('gravitation', 40, 1, '{"runs": 20}')), label => label, k => 3, partition_by => run)
    UNION ALL
    SELECT 80, * FROM ngp((SELECT * FROM sample_problem('gravitation', 80, 1, '{"runs": 20}')), label => label, k => 3, partition_by => run)
    UNION ALL
    SELECT 160, * FROM ngp((SELECT * FROM sample_problem('gravitation', 160, 1, '{"runs": 20}')), label => label, k => 3, partition_by => run)
),
runs AS (
    SELECT rows, run, count(*) FILTER (WHERE feature NOT LIKE 'noise%') AS hits, count(*) AS chosen FROM found GROUP BY rows, run
)
SELECT rows, avg(CASE WHEN hits = 3 AND chosen = 3 THEN 1.0 ELSE 0.0 END) AS recovered, round(1 - avg(hits) / 3, 3) AS missed
FROM runs GROUP BY rows ORDER BY rows;
