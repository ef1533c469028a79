-- What to measure for 25 euros? A blood test costs ten, scales and a cuff nearly nothing.
-- Expect two blood tests beside scales and a cuff, and no more spent than there is.
CREATE TABLE prices AS
SELECT column1 AS feature, column2 AS cost
FROM (VALUES ('bmi', 1.0), ('bp', 2.0), ('s1', 10.0), ('s2', 10.0), ('s3', 10.0), ('s4', 10.0), ('s5', 10.0), ('s6', 10.0));
SELECT rank, feature, cost, round(train_score, 3) AS train_score FROM omp(sample.diabetes, label => label, exclude => ['age', 'sex'], costs => prices, budget => 25);
