-- Is there a better set of five than the one that is grown feature by feature?
SELECT 'best_subset' AS selector, string_agg(feature, ', ' ORDER BY feature) AS features, round(max(train_score), 4) AS explained
FROM best_subset(sample.diabetes, label => label, k => 5)
UNION ALL
SELECT 'omp', string_agg(feature, ', ' ORDER BY feature), round(max(train_score), 4)
FROM omp(sample.diabetes, label => label, k => 5);
