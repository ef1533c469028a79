-- Which of ten quantities decide the current in a wire, and how many are there? The label is V / R, which no linear method sees whole.
-- Expect voltage and resistance, an error near nothing on the rows held out, and no third feature.
SELECT rank, feature, round(score, 3) AS lead, round(valid_score, 4) AS r2
FROM ngp((SELECT * FROM sample_problem('ohm', 500, 1)), label => label, k => 'auto');

-- Which parts of a digit tell it from the others? Windows of two by two pixels, judged by held-out accuracy.
SELECT rank, feature, round(valid_score, 3) AS accuracy
FROM ngp('sample.digits', 'label', 5, '{"image": [8, 8], "window": [2, 2], "standardize": false}');
