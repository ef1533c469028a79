-- Do attention weights tell what features are worth? Ask attention for all features at once, and train a network for each.
-- Expect a rank correlation close to 1.
SELECT round(corr(a.rank, g.rank), 1) AS spearman
FROM sequential_attention('sample.diabetes', label => 'label', k => 10, per_round => 10) AS a
JOIN marginal_gains('sample.diabetes', label => 'label') AS g ON a.feature = g.feature;

-- And with two features already chosen: what would each of the others add?
-- Expect small gains: two features already tell most of it.
SELECT rank, feature, gain > 0 AS helps FROM marginal_gains('sample.diabetes', label => 'label', given => ['bmi', 's5']) LIMIT 3;
