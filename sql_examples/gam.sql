-- Which measurements count if each may bend as it likes? Expect bmi and s5, whose functions are nearly straight.
SELECT rank, feature, round(score, 3) AS variance_of_its_function
FROM gam('sample.diabetes', 'label', 5);
