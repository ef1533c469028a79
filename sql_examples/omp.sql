-- Which few measurements explain the progression of diabetes, if age and sex have to be in the model anyway?
-- Expect age and sex first, then what explains most of the rest; every feature that was not chosen says why.
SELECT rank, feature, round(score, 3) AS score, round(train_score, 3) AS train_score, reason
FROM omp(
  sample.diabetes,
  label => label,
  k => 5,
  must_include => ['age', 'sex'],
  rows => 'all'
);
