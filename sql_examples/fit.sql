-- What to do with the chosen features? Fit a model on some patients, keep it, predict the others, and take it along as SQL.
-- Expect a mean error of about 45, a table that says what each feature adds, and an expression for any database.
CREATE TABLE model AS
SELECT * FROM fit((SELECT * FROM sample.diabetes WHERE age % 4 > 0), label => label,
                  features => (SELECT feature FROM omp((SELECT * FROM sample.diabetes WHERE age % 4 > 0), label => label, k => 3)));
SELECT part, feature, round(value, 2) AS value FROM model WHERE part IN ('intercept', 'coefficient');
-- How far are its predictions of other patients from the truth?
SELECT count(*) AS patients, round(avg(abs(prediction - label)), 1) AS mean_error
FROM predict((SELECT * FROM sample.diabetes WHERE age % 4 = 0), model => model);
-- How does another database predict?
SELECT sql FROM model_sql(model);
