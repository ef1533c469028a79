-- Which two of ten features make the label together, when neither shows anything alone? Beside it what the correlation finds.
SELECT r.rank, r.feature AS relief, c.feature AS correlation
FROM relief((SELECT * FROM sample_problem('interaction', 600, 1)), label => label, k => 2) AS r
JOIN correlation((SELECT * FROM sample_problem('interaction', 600, 1)), label => label, k => 2) AS c ON r.rank = c.rank ORDER BY r.rank;
