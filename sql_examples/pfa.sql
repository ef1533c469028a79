-- Which few measurements stand for all the others, whatever is to be predicted? Expect one of each kind.
SELECT rank, feature, round(score, 2) AS share_of_features, round(train_score, 2) AS explains
FROM pfa(sample.breast_cancer, label => label, k => 5) ORDER BY rank;
