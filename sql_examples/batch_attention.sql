-- How does a network that looks at whole batches share out its attention?
-- Expect bmi and s5 in front.
SELECT rank, feature, round(score, 2) AS attention FROM batch_attention('sample.diabetes', 'label', 4);
