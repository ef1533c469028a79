-- How do coefficients and scores change as features come in?
-- Expect the score on held-out rows to rise with the first features and to stay where it is with the last.
SELECT step, round(avg(train_score), 3) AS train_score, round(avg(valid_score), 3) AS valid_score
FROM selection_path(sample.diabetes, label => label, selector => 'omp', k => 8, folds => 5)
WHERE fold IS NULL GROUP BY step ORDER BY step;

-- The coefficient of bmi shrinks as others explain what it explained at first.
SELECT step, round(coefficient, 2) AS coefficient FROM selection_path(sample.diabetes, label => label, k => 6) WHERE feature = 'bmi' ORDER BY step;
