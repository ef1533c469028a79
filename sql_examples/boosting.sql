-- Which measurements of wines do boosted trees need, and how well do three of them predict rows that the choice has not seen?
-- Expect three that say different things, and an accuracy near 1.
SELECT rank, feature, round(score, 3) AS share FROM boosting(sample.wine, label => label, k => 3, rounds => 30) ORDER BY rank;
SELECT metric, round(value, 3) AS value, round(standard_error, 3) AS standard_error
FROM evaluate(sample.wine, label => label, selector => 'boosting', selector_options => MAP {'rounds': 30}, k => 3, model => 'boosting', folds => 5)
WHERE split = 'test' AND fold IS NULL;
