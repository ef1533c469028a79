-- On which measurements do boosted trees rely, judged by flowers that they have not seen? Expect the petals.
SELECT rank, feature, round(score, 2) AS r2_lost
FROM permutation('sample.iris', 'label', 4);
