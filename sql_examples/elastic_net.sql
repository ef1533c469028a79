-- Which features does an elastic net take, and which of them does the LASSO leave out because another says the same?
SELECT e.rank, e.feature, round(e.coefficient, 2) AS coefficient, l.feature IS NULL AS lasso_leaves_it_out
FROM elastic_net(sample.diabetes, label => label, k => 6, l1_ratio => 0.3) AS e
LEFT JOIN lasso(sample.diabetes, label => label, k => 6) AS l ON e.feature = l.feature ORDER BY e.rank;
