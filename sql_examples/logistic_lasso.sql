-- Which measurements tell malignant cells from benign ones under a penalty, and how do they move the log odds?
SELECT rank, feature, round(score, 3) AS enters_at, round(coefficient, 3) AS log_odds
FROM logistic_lasso(sample.breast_cancer, label => label, k => 5) ORDER BY rank;
