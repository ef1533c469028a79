-- Which columns predict the label? Five short answers on the built-in sample tables.
-- Expect a ranking each time: best feature first, its score, and the fit with all features up to it.

-- The five measurements that say most about how diabetes progresses.
SELECT rank, feature, round(score, 4) AS score, round(train_score, 4) AS train_score, round(coefficient, 3) AS coefficient
FROM omp('sample.diabetes', 'label', 5);

-- Classes, a subquery instead of a table, and named arguments.
SELECT rank, feature, round(score, 4) AS score
FROM sequential_lasso((SELECT * EXCLUDE (alcohol) FROM sample.wine), label => 'label', k => 4);

-- As few features as predict rows that were held out within a standard error of the best.
SELECT rank, feature, round(score, 4) AS score, round(valid_score, 2) AS valid_score
FROM omp(sample.breast_cancer, label => label, k => 'one_se', folds => 5)
ORDER BY rank;

-- How good a selection is: chosen, trained and judged anew in each of five folds, by rows that neither selection nor model has seen.
SELECT metric, round(value, 2) AS value, round(standard_error, 2) AS standard_error
FROM evaluate(sample.wine, label => label, selector => 'sequential_attention', k => 4, model => 'logistic', folds => 5)
WHERE split = 'test' AND fold IS NULL;

-- Every answer has the same columns, so that methods compare side by side.
SELECT feature, max(rank) FILTER (WHERE method = 'omp') AS omp, max(rank) FILTER (WHERE method = 'correlation') AS correlation
FROM (SELECT * FROM omp('sample.diabetes', 'label', 4) UNION ALL SELECT * FROM correlation('sample.diabetes', 'label', 4))
GROUP BY feature
ORDER BY omp, correlation;

-- What else there is.
SELECT selector, aliases, summary, labels FROM selectors();
