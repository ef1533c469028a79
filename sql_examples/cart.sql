-- Which measurements does a decision tree ask a wine for? Expect few of thirteen, and of most wines only two.
SELECT rank, feature, round(score, 2) AS share_of_wines, note
FROM cart('sample.wine', 'label', 4);
