-- Do trees that cut at random spread the credit between measurements that say nearly the same?
-- Expect the same few at the top as with a forest, with shares nearer to each other.
SELECT e.feature, round(e.score, 3) AS extra_trees, round(f.score, 3) AS random_forest
FROM extra_trees('sample.wine', 'label', 6, '{"trees": 50}') AS e
LEFT JOIN random_forest('sample.wine', 'label', 13, '{"trees": 50}') AS f ON e.feature = f.feature
ORDER BY e.rank;
