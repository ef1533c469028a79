-- Which panel of tests is worth its blood sample: features that are bought together, from a table that says so.
-- Expect panels and single columns ranked side by side.
CREATE TABLE panels AS
SELECT * FROM (VALUES ('s1', 'lipids'), ('s2', 'lipids'), ('s3', 'lipids'), ('s4', 'lipids'), ('age', 'person'), ('sex', 'person')) AS t(feature, feature_group);

SELECT rank, feature, round(score, 3) AS score, round(train_score, 3) AS train_score
FROM omp(sample.diabetes, label => label, k => 4, groups => 'panels');
