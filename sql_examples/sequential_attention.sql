-- Which ten pixels tell handwritten digits apart? A network attends to pixels while it learns to read.
-- Expect pixels from the middle of the image.
SELECT rank, feature FROM sequential_attention('sample.digits', 'label', 10);

-- Is that better than what linear methods choose? Another network, which sees ten pixels only, reads digits that neither it nor the selection has seen.
-- Expect attention to be ahead.
SELECT 'sequential_attention' AS method, round(value, 2) AS accuracy
FROM evaluate(sample.digits, label => label, selector => 'sequential_attention', k => 10)
WHERE split = 'test' AND metric = 'accuracy'
UNION ALL
SELECT 'correlation', round(value, 2)
FROM evaluate(sample.digits, label => label, selector => 'correlation', k => 10)
WHERE split = 'test' AND metric = 'accuracy';

-- Do attention and plain pursuit agree on what tells malignant from benign?
-- Expect the same features in the same order: for linear models the two are proved equal.
SELECT a.rank, a.feature AS sequential_attention, o.feature AS omp
FROM sequential_attention(sample.breast_cancer, label => label, k => 6, model => 'linear') AS a
JOIN omp(sample.breast_cancer, label => label, k => 6) AS o ON a.rank = o.rank
ORDER BY a.rank;
