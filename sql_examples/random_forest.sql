-- Does a forest, which sees thresholds and interactions, rank the measurements of wines as a linear method does?
-- Expect the same few at the top, and the credit spread more evenly below.
SELECT f.feature, f.rank AS forest, round(f.score, 3) AS importance, o.rank AS omp
FROM random_forest('sample.wine', 'label', 6, '{"trees": 50}') AS f
LEFT JOIN omp('sample.wine', 'label', 6) AS o ON f.feature = o.feature
ORDER BY f.rank;
