-- Which wine measurements say most together, two by two?
SELECT rank, feature, round(score, 3) AS information, round(train_score, 3) AS train_score FROM jmi(sample.wine, label => label, k => 5);
