-- Which measurements does a network's error depend on, through all of its layers, when depending on one costs something?
-- Expect flavanoids and proline among the first.
SELECT rank, feature, round(score, 2) AS share FROM deep_lasso('sample.wine', 'label', 5);
