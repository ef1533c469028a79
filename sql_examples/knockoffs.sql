-- Which features, with no more than a fifth of them false on average?
-- Expect features that carry the label (x…), and few that do not (noise_…).
SELECT rank, feature, round(q_value, 3) AS q_value
FROM knockoffs((SELECT * FROM sample_problem('linear', 500, 7, '{"columns": 60, "support": 7, "noise": 1.5}')), label => label, fdr => 0.2)
WHERE chosen ORDER BY rank;
