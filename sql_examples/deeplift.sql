-- Which measurements move a network's opinion of a wine most? Expect a ranking near to that of attention, without a choice of few.
SELECT d.rank, d.feature, round(d.score, 2) AS share
FROM deeplift('sample.wine', 'label', 5) AS d
ORDER BY d.rank;
