-- Which features have more to do with the diagnosis than chance explains, if one in twenty of the list may be false?
-- Expect most of the thirty: the measurements are of one and the same cell, so that many say the same.
SELECT rank, feature, round(score, 1) AS f, p_value
FROM f_test('sample.breast_cancer', 'label', 'auto') WHERE rank <= 5;
