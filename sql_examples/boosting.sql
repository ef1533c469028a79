-- Which measurements of wines do boosted trees need, and how well do three of them predict the rows held out?
-- Expect three that say different things, and an accuracy near 1.
CREATE TABLE chosen AS SELECT rank, feature, score FROM boosting(sample.wine, label => label, k => 3, rounds => 30);
SELECT rank, feature, round(score, 3) AS share FROM chosen ORDER BY rank;
SELECT metric, round(value, 3) AS value FROM evaluate(sample.wine, label => label, features => (SELECT feature FROM chosen), model => 'boosting') WHERE split = 'test';
