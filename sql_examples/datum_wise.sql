-- Which measurements does each tumour need before it can be called benign or malignant, and how many could be saved?
-- Expect a handful that most rows ask for, rows that are decided with one or two, and a price for every point of accuracy.
SELECT rank, feature, round(score, 2) AS asked_for, reason
FROM datum_wise('sample.breast_cancer', 'label', 6, '{"lambda": 0.03, "states": 10}');

CREATE TABLE tumours AS SELECT row_number() OVER () AS id, * FROM sample.breast_cancer;

-- How many measurements do tumours need that were not learnt from, and how many of these are called right?
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

-- What does a point of accuracy cost in measurements?
SELECT lambda, round(accuracy, 3) AS accuracy, round(mean_features, 1) AS mean_features, round(sparsity, 2) AS sparsity
FROM datum_wise_curve(sample.breast_cancer, label => label, lambda => [0.01, 0.03, 0.1], states => 10);

-- How are three of the tumours decided, step by step? Expect a question or two each, then a class.
SELECT id, step, action, feature, prediction
FROM datum_wise_steps(tumours, label => label, key => id, lambda => 0.03, states => 10)
WHERE id <= 3
ORDER BY id, step;

-- What has been learnt is a table: keep it, and classify other rows by it without learning again.
SELECT part, count(*) AS rows
FROM datum_wise_policy(tumours, label => label, exclude => id, lambda => 0.03, states => 10)
GROUP BY part
ORDER BY part;
