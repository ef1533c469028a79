-- How good are five features? Train on some patients, judge by the others.
-- Expect most of what all ten features reach.
SELECT 'five features' AS model, metric, round(value, 2) AS value
FROM evaluate((SELECT * FROM sample.diabetes WHERE age % 4 > 0), label => label, model => 'linear',
              test => (SELECT * FROM sample.diabetes WHERE age % 4 = 0),
              features => (SELECT feature FROM omp((SELECT * FROM sample.diabetes WHERE age % 4 > 0), label => label, k => 5)))
WHERE split = 'test'
UNION ALL
SELECT 'all features', metric, round(value, 2)
FROM evaluate((SELECT * FROM sample.diabetes WHERE age % 4 > 0), label => label, model => 'linear',
              test => (SELECT * FROM sample.diabetes WHERE age % 4 = 0))
WHERE split = 'test'
ORDER BY metric, model;
