-- Which features are there when large coefficients are shrunken little?
SELECT rank, feature, round(coefficient, 2) AS coefficient, round(train_score, 3) AS train_score
FROM adaptive_lasso(sample.diabetes, label => label, k => 4);
