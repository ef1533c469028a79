-- In which order do features leave a network while a penalty grows? Expect the ones that it misses most at the top.
SELECT rank, feature, round(score, 2) AS leaves_at, round(valid_score, 2) AS held_out
FROM lassonet(sample.wine, label => label, k => 5, validation => 0.3) ORDER BY rank;
