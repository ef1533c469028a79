-- How good is a selection of five features? Select, train and judge anew in each of five folds.
-- Expect most of what all ten features reach.
SELECT 'five features' AS model, metric, round(value, 2) AS value, round(standard_error, 2) AS standard_error
FROM evaluate(sample.diabetes, label => label, model => 'linear', selector => 'omp', k => 5, folds => 5)
WHERE split = 'test' AND fold IS NULL
UNION ALL
SELECT 'all features', metric, round(value, 2), round(standard_error, 2)
FROM evaluate(sample.diabetes, label => label, model => 'linear', folds => 5)
WHERE split = 'test' AND fold IS NULL
ORDER BY metric, model;

-- On a table of its own that neither the selection nor the model has seen.
SELECT metric, round(value, 2) AS value
FROM evaluate((SELECT * FROM sample.diabetes WHERE age % 4 > 0), label => label, model => 'linear', selector => 'omp', k => 5,
              test => (SELECT * FROM sample.diabetes WHERE age % 4 = 0))
WHERE split = 'test';
