-- Which of the features that correlate with the label add something to the ones before them?
-- Expect high scores throughout, but little gain from features that repeat what others say.
SELECT rank, feature, round(score, 3) AS correlation, round(gain, 4) AS gain
FROM correlation('sample.breast_cancer', 'label', 8);
