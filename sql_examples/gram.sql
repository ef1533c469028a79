-- How can a selection be kept up to date without reading the old data again?
-- Expect the same ranking from two merged halves as from the whole table.
CREATE TABLE daily AS
SELECT age % 2 AS day, gram(label, sex, bmi, bp, s1, s2, s3, s4, s5, s6) AS g
FROM sample.diabetes
GROUP BY age % 2;

SELECT r.rank, r.feature, round(r.score, 4) AS score
FROM (SELECT unnest(select_from(gram_merge(g), 'omp', '{"k": 4}')) AS r FROM daily);

SELECT rank, feature, round(score, 4) AS score
FROM omp(sample.diabetes, label => label, k => 4, exclude => age);

-- What is in them.
SELECT day, gram_summary(g) AS summary FROM daily ORDER BY day;
