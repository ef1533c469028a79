-- Do the same measurements matter for the young and for the old?
-- Expect one ranking for each group, the group's column first.
SELECT generation, rank, feature, round(score, 3) AS score
FROM omp(
  (SELECT * EXCLUDE (age), CASE WHEN age < 50 THEN 'young' ELSE 'old' END AS generation FROM sample.diabetes),
  label => label,
  k => 3,
  partition_by => generation
)
ORDER BY generation, rank;
