-- Which of these measurements matter at all? Expect all but a few, redundant ones too: the question is not which few suffice.
SELECT rank, feature, round(score, 2) AS against_best_shadow, reason
FROM boruta('sample.diabetes', 'label', 10);
