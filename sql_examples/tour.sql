-- Which customers leave, and why? A tour in ten minutes: look at a messy table, select, how many, how sure, which method, at what cost, what it is worth, fit, predict, export.

-- 1. A file as one gets it: numbers with holes, texts of many spellings, an id, a copy, a leak, a constant, and some columns that say nothing.
SELECT 'A file as one gets it:' AS "step 1";
COPY (
    SELECT 100000 + value AS customer_id,
           CASE WHEN random_a < 0.08 THEN NULL ELSE round(18 + 60 * random_b, 0) END AS age,
           CASE WHEN random_c < 0.55 THEN 'monthly' WHEN random_c < 0.8 THEN 'yearly' ELSE 'two years' END AS contract,
           CASE WHEN random_d < 0.1 THEN NULL WHEN random_d < 0.5 THEN 'north' WHEN random_d < 0.8 THEN 'south' ELSE 'west' END AS region,
           round(20 + 80 * random_e, 2) AS monthly_fee,
           round(100 * (20 + 80 * random_e), 0) AS monthly_fee_cents,
           floor(8 * random_f * random_f) AS complaints,
           floor(72 * random_g) AS months_with_us,
           random_h AS noise_1, random_i AS noise_2,
           'EUR' AS currency,
           CASE WHEN leaves THEN 1 ELSE 0 END AS goodbye_letters,
           CASE WHEN leaves THEN 'left' ELSE 'stayed' END AS outcome
    FROM (SELECT *, 2.2 * (CASE WHEN random_c < 0.55 THEN 1 ELSE 0 END) + 0.5 * floor(8 * random_f * random_f) - 0.045 * floor(72 * random_g) + 0.02 * (80 * random_e) - 1.6
                    > 1.5 * (random_j + random_k + random_l - 1.5) * 2 AS leaves
          FROM (SELECT value,
                       (value * 7919 % 10007) / 10007.0 AS random_a, (value * 6271 % 10009) / 10009.0 AS random_b,
                       (value * 4729 % 10037) / 10037.0 AS random_c, (value * 3571 % 10039) / 10039.0 AS random_d,
                       (value * 8831 % 10061) / 10061.0 AS random_e, (value * 5113 % 10067) / 10067.0 AS random_f,
                       (value * 2909 % 10069) / 10069.0 AS random_g, (value * 6833 % 10079) / 10079.0 AS random_h,
                       (value * 9127 % 10091) / 10091.0 AS random_i, (value * 3313 % 10093) / 10093.0 AS random_j,
                       (value * 7547 % 10099) / 10099.0 AS random_k, (value * 1861 % 10103) / 10103.0 AS random_l
                FROM generate_series(1, 4000)))
) TO '/tmp/pursuit_tour/customers.csv' STORED AS CSV OPTIONS ('format.has_header' 'true');

CREATE EXTERNAL TABLE customers STORED AS CSV LOCATION '/tmp/pursuit_tour/customers.csv' OPTIONS ('format.has_header' 'true');

-- 2. What is in it? A row for each column: what it explains of the outcome by itself, and what one should know before believing it.
SELECT 'What is in it?' AS "step 2";
SELECT feature, type, nulls, "distinct", round(association, 3) AS explains, flags FROM describe_features(customers, label => outcome);

-- 3. So the id, the leak, the copy and the constant stay out. Rows are set aside now, and nothing below looks at them before the end.
SELECT 'So the id, the leak, the copy and the constant stay out.' AS "step 3";
CREATE VIEW usable AS SELECT * EXCEPT (customer_id, goodbye_letters, monthly_fee_cents, currency) FROM customers WHERE customer_id % 5 > 0;
CREATE VIEW others AS SELECT * EXCEPT (goodbye_letters, monthly_fee_cents, currency) FROM customers WHERE customer_id % 5 = 0;

-- 4. Which columns predict who leaves? `gain` is what each adds to those before it.
SELECT 'Which columns predict who leaves?' AS "step 4";
SELECT rank, feature, round(gain, 3) AS gain, round(train_score, 3) AS train_score FROM omp(usable, label => outcome, k => 6);

-- 5. How many are enough? As few as predict rows left out about as well as the best number does.
SELECT 'How many are enough?' AS "step 5";
SELECT rank, feature, round(valid_score, 3) AS valid_score, round(valid_error, 3) AS valid_error FROM omp(usable, label => outcome, k => 'one_se', folds => 5);

-- 6. How sure? How often half of the rows choose a column among their first two, and a bound on the false ones among those at least as frequent: at worst every other time one of them is false.
SELECT 'How sure?' AS "step 6";
SELECT feature, frequency, round(false_selections, 2) AS false_selections FROM stability_selection(usable, label => outcome, k => 2, resamples => 50);

-- 7. Which method? Several on one reading of the table, judged on rows that they have not seen.
SELECT 'Which method?' AS "step 7";
SELECT rank, selector, round(valid_score, 3) AS valid_score, round(valid_error, 3) AS valid_error, round(overlap, 2) AS overlap FROM compare_selectors(usable, label => outcome, k => 4);

-- 8. Or without choosing a method: several are tried, rows held out say who is right, and how many columns it takes.
SELECT 'Or without choosing a method:' AS "step 8";
SELECT rank, feature, round(valid_score, 3) AS valid_score, note FROM select_features(usable, label => outcome);

-- 9. At what cost? Asking for an age takes effort, counting complaints some; the best for 3.5 of it.
SELECT 'At what cost?' AS "step 9";
SELECT rank, feature, cost FROM omp(usable, label => outcome, costs => MAP {'age': 5.0, 'complaints': 1.5}, budget => 3.5);

-- 10. Is it worth anything? The selection is repeated inside each fold, so that no row judges a choice that it helped to make.
SELECT 'Is it worth anything?' AS "step 10";
SELECT metric, round(value, 3) AS value, round(standard_error, 3) AS standard_error
FROM evaluate(usable, label => outcome, selector => 'omp', k => 4, model => 'logistic', folds => 5) WHERE split = 'test' AND fold IS NULL;

-- 11. Fit a model on the chosen columns, and keep it: it is a table.
SELECT 'Fit a model on the chosen columns, and keep it:' AS "step 11";
CREATE TABLE model AS
SELECT * FROM fit(usable, label => outcome, model => 'logistic', features => (SELECT feature FROM omp(usable, label => outcome, k => 4)));

-- 12. Predict those who were set aside.
SELECT 'Predict those who were set aside.' AS "step 12";
SELECT outcome, prediction, count(*) AS customers FROM predict(others, model => model) GROUP BY outcome, prediction ORDER BY outcome, prediction;

-- 13. Take it along: the model as an expression for any database, the columns as a query, the predictions as a file.
SELECT 'Take it along:' AS "step 13";
SELECT sql FROM model_sql(model);
SELECT sql FROM chosen_sql(usable, label => outcome, k => 4);
COPY (SELECT customer_id, prediction FROM predict(others, model => model)) TO '/tmp/pursuit_tour/predictions.csv' STORED AS CSV OPTIONS ('format.has_header' 'true');
