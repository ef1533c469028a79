-- Which features would a stepwise regression take, and how much of the label does each add? Expect the criterion to stop it early.
SELECT rank, feature, round(score, 4) AS adds, round(train_score, 4) AS r2
FROM forward_selection('sample.diabetes', 'label', 'auto');
