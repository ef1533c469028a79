-- Which measurements does each tumour need before it can be called benign or malignant, and how many could be saved?
-- Expect a handful that most rows ask for, rows that are decided with one or two, and a price for every point of accuracy.
SELECT rank, feature, round(score, 2) AS asked_for, reason
FROM datum_wise('sample.breast_cancer', 'label', 6, '{"lambda": 0.03, "states": 10}');

CREATE TABLE tumours AS SELECT row_number() OVER () AS id, * FROM sample.breast_cancer;

SELECT n_features, count(*) AS tumours, round(avg(CAST(correct AS INT)), 3) AS accuracy
FROM datum_wise_classify(
  (SELECT * FROM tumours WHERE id % 2 = 0),
  label => label,
  test => (SELECT * FROM tumours WHERE id % 2 = 1),
  key => id,
  lambda => 0.03,
  states => 10
)
GROUP BY n_features
ORDER BY n_features;

SELECT lambda, round(accuracy, 3) AS accuracy, round(mean_features, 1) AS mean_features, round(sparsity, 2) AS sparsity
FROM datum_wise_curve(sample.breast_cancer, label => label, lambda => [0.01, 0.03, 0.1], states => 10);
