-- Which feature says something about the label that no straight line shows? Expect the square of a to be found, and to be invisible for correlation.
CREATE TABLE bent AS
SELECT sin(value * 1.7) AS a, sin(value * 2.9) AS b, sin(value * 1.7) * sin(value * 1.7) AS y
FROM generate_series(1, 1000);

-- Which feature is bound to the label in any way, and which by a straight line?
SELECT m.feature, round(m.score, 3) AS information, round(c.score, 3) AS correlation
FROM mutual_information(bent, label => y) AS m
JOIN correlation(bent, label => y) AS c ON m.feature = c.feature
ORDER BY m.rank;
