-- Five features of cells that say much of the diagnosis and not the same as each other.
-- Beside them what the F test alone takes: sizes of the cell, one after the other.
SELECT m.rank, m.feature AS mrmr, f.feature AS f_test
FROM mrmr(sample.breast_cancer, label => label, k => 5) AS m
JOIN f_test(sample.breast_cancer, label => label, k => 5) AS f ON m.rank = f.rank ORDER BY m.rank;
