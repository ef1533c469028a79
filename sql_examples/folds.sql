-- How many features? Repeat the selection without each fold of the rows, and judge it by the rows left out.
-- Expect fewer features within a standard error of the best than at the best itself.
SELECT 'best' AS size, count(*) AS features, round(max(valid_score), 3) AS valid_score FROM omp(sample.breast_cancer, label => label, k => 'auto', folds => 10)
UNION ALL
SELECT 'within one standard error', count(*), round(max(valid_score), 3) FROM omp(sample.breast_cancer, label => label, k => 'one_se', folds => 10);
