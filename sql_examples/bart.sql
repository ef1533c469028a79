-- Which features do Bayesian trees split by, and what do the splits of each explain?
SELECT rank, feature, round(score, 2) AS share
FROM bart(sample.diabetes, label => label, k => 5) ORDER BY rank;
