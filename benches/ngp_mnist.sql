-- MNIST: 19 of 49 windows (40 % of the pixels) chosen from a thousand rows, and a network trained on those pixels of the same rows, judged by the test rows.
-- `benches/ngp.sh` makes the tables mnist_train and mnist_test.
CREATE VIEW train AS SELECT * FROM mnist_train LIMIT 1000;
CREATE TABLE pixels AS
SELECT 'pixel_' || lpad(CAST(value AS VARCHAR), 3, '0') AS feature,
       'window_' || CAST(value / 112 AS VARCHAR) || '_' || CAST(value % 28 / 4 AS VARCHAR) AS window
FROM generate_series(0, 783);
CREATE TABLE chosen AS
SELECT 0 AS seed, feature AS window FROM ngp(train, label => label, k => 19, image => [28, 28], window => [4, 4], standardize => false, seed => 0)
UNION ALL
SELECT 1 AS seed, feature AS window FROM ngp(train, label => label, k => 19, image => [28, 28], window => [4, 4], standardize => false, seed => 1)
UNION ALL
SELECT 2 AS seed, feature AS window FROM ngp(train, label => label, k => 19, image => [28, 28], window => [4, 4], standardize => false, seed => 2);
SELECT 0 AS seed, split, metric, round(value, 4) AS value, round(deviation, 4) AS deviation
FROM evaluate(train, label => label, test => mnist_test, seeds => 3,
              features => (SELECT p.feature FROM pixels AS p JOIN chosen AS c ON p.window = c.window WHERE c.seed = 0))
WHERE metric = 'accuracy'
UNION ALL
SELECT 1 AS seed, split, metric, round(value, 4), round(deviation, 4)
FROM evaluate(train, label => label, test => mnist_test, seeds => 3,
              features => (SELECT p.feature FROM pixels AS p JOIN chosen AS c ON p.window = c.window WHERE c.seed = 1))
WHERE metric = 'accuracy'
UNION ALL
SELECT 2 AS seed, split, metric, round(value, 4), round(deviation, 4)
FROM evaluate(train, label => label, test => mnist_test, seeds => 3,
              features => (SELECT p.feature FROM pixels AS p JOIN chosen AS c ON p.window = c.window WHERE c.seed = 2))
WHERE metric = 'accuracy'
ORDER BY split, seed;
