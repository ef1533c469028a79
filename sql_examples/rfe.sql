-- Which measurements are left when the least useful goes, again and again? Expect other features than those that go in first: elimination sees them together.
SELECT r.rank, r.feature AS last_to_go, round(r.score, 3) AS part, f.feature AS first_to_come
FROM rfe('sample.diabetes', 'label', 5) AS r
JOIN forward_selection('sample.diabetes', 'label', 5) AS f ON r.rank = f.rank
ORDER BY r.rank;
