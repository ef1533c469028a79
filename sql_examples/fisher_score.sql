-- Which features keep the three kinds of iris apart best? Expect the petals.
SELECT rank, feature, round(score, 2) AS fisher_score, p_value < 1e-10 AS is_certain
FROM fisher_score(sample.iris, label => label);
