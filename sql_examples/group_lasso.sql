-- Which measurements does a network hold on to when using one costs something?
-- Expect proline and flavanoids among the first.
SELECT rank, feature, round(score, 2) AS share FROM group_lasso('sample.wine', 'label', 5);
