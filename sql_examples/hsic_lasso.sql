-- What is connected with the label in whatever way, straight or bent? Expect features that a linear method passes over.
SELECT h.rank, h.feature, l.feature IS NULL AS lasso_leaves_it_out
FROM hsic_lasso(sample.diabetes, label => label, k => 5) AS h
LEFT JOIN lasso(sample.diabetes, label => label, k => 5) AS l ON h.feature = l.feature ORDER BY h.rank;
