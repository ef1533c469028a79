-- Which method suits this table? Several selectors on one reading of it, judged on rows that they have not seen.
-- Expect scores that are closer than their errors, and choices that have most features in common.
SELECT rank, selector, round(valid_score, 3) AS valid_score, round(valid_error, 3) AS valid_error, n_features, round(overlap, 2) AS overlap, closest
FROM compare_selectors(sample.breast_cancer, label => label, k => 5);
-- What do two of them share?
SELECT selector, other, round(jaccard, 2) AS jaccard, shared
FROM compare_selectors(sample.breast_cancer, label => label, k => 5, selectors => ['omp', 'correlation'], pairs => true);
