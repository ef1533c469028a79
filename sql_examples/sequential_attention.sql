-- Do attention and plain pursuit agree on what tells malignant from benign?
-- Expect the same features in the same order: for linear models the two are proved equal.
SELECT a.rank, a.feature AS sequential_attention, o.feature AS omp
FROM sequential_attention(sample.breast_cancer, label => label, k => 6, model => 'linear') AS a
JOIN omp(sample.breast_cancer, label => label, k => 6) AS o ON a.rank = o.rank
ORDER BY a.rank;
