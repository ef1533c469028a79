-- Which measurements does a sparse support vector machine use, and which of them does logistic regression use as well?
SELECT s.rank, s.feature, l.rank AS rank_in_logistic_lasso
FROM l1_svm(sample.breast_cancer, label => label, k => 6) AS s
LEFT JOIN logistic_lasso(sample.breast_cancer, label => label, k => 6) AS l ON s.feature = l.feature ORDER BY s.rank;
