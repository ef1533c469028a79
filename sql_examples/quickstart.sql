-- Which columns predict the label? Five short answers on the built-in sample tables.
-- Expect a ranking each time: best feature first, its score, and the fit with all features up to it.

-- The five measurements that say most about how diabetes progresses.
SELECT rank, feature, round(score, 4) AS score, round(train_score, 4) AS train_score, round(coefficient, 3) AS coefficient
FROM omp('sample.diabetes', 'label', 5);

-- Classes, a subquery instead of a table, and named arguments.
SELECT rank, feature, round(score, 4) AS score
FROM sequential_lasso((SELECT * EXCLUDE (alcohol) FROM sample.wine), label => 'label', k => 4);

-- As many features as an information criterion asks for.
SELECT rank, feature, round(score, 4) AS score
FROM omp(sample.breast_cancer, label => label, k => 'auto')
ORDER BY rank;

-- A network attends to what it needs; another one, which sees only the chosen features, is judged on rows that neither has seen.
WITH known AS (SELECT * FROM sample.wine WHERE proline % 3 > 0), unknown AS (SELECT * FROM sample.wine WHERE proline % 3 = 0)
SELECT split, metric, round(value, 2) AS value
FROM evaluate(known, label => label, features => (SELECT feature FROM sequential_attention(known, label => label, k => 4)), test => unknown);

-- Every answer has the same columns, so that methods compare side by side.
SELECT feature, max(rank) FILTER (WHERE method = 'omp') AS omp, max(rank) FILTER (WHERE method = 'correlation') AS correlation
FROM (SELECT * FROM omp('sample.diabetes', 'label', 4) UNION ALL SELECT * FROM correlation('sample.diabetes', 'label', 4))
GROUP BY feature
ORDER BY omp, correlation;

-- What else there is.
SELECT selector, aliases, summary, labels FROM selectors();
