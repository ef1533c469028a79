-- What is in the table? Look at every column before any of them is chosen.
-- Expect the columns that explain most of the label first; a flag would warn of ids, copies, constants and leaks.
SELECT feature, type, nulls, distinct, round(median, 2) AS median, round(association, 3) AS association, flags
FROM describe_features(sample.diabetes, label => label)
ORDER BY role DESC, association DESC;
-- Which columns say the same? Expect the two cholesterols.
SELECT feature, other, round(correlation, 2) AS correlation
FROM correlation_matrix(sample.diabetes, exclude => label)
WHERE feature < other
ORDER BY abs(correlation) DESC
LIMIT 3;
