-- Which features depend on the kind of wine, in whatever way?
SELECT rank, feature, round(score, 1) AS chi2, p_value
FROM chi2(sample.wine, label => label, fdr => 0.001, correction => 'bonferroni') LIMIT 5;
