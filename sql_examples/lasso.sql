-- How do the coefficients grow along the LASSO path, and does any feature leave it again?
-- Expect one row for each step and active feature; s3 leaves in step 10.
SELECT rank AS step, count(*) AS features, max(feature) FILTER (WHERE reason = 'enters') AS enters, max(feature) FILTER (WHERE reason = 'leaves') AS leaves
FROM lasso(sample.diabetes, label => label, k => 10, path => true)
GROUP BY rank
ORDER BY rank;
