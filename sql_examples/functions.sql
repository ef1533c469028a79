-- What is there, and how is it called?
SELECT kind, count(*) AS functions FROM functions() GROUP BY kind ORDER BY kind;
SELECT function, summary, example FROM functions() WHERE kind IN ('report', 'model');
-- All about one of them.
SELECT * FROM manual('compare_selectors');
