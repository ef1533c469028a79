-- Which features does a network miss most when they are kept from it? Expect bmi and s5 in front, as linear elimination has them.
SELECT d.rank, d.feature AS network_misses, round(d.score, 2) AS r2_lost, e.feature AS linear_keeps
FROM drop_one_out('sample.diabetes', 'label', 3) AS d
JOIN drop_one_out(sample.diabetes, label => 'label', k => 3, mode => 'retrain', model => 'linear') AS e ON d.rank = e.rank
ORDER BY d.rank;
