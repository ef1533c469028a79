-- At which penalty does each measurement enter, for wines of three growers?
-- Expect the penalties to fall as the features that explain most are freed of them.
SELECT rank, feature, round(score, 3) AS penalty, round(train_score, 3) AS train_score
FROM sequential_lasso('sample.wine', 'label', 6);
