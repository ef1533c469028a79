-- Give me the table with the best three columns alone.
-- Expect three columns and the label, and the query that takes them without a selection.
SELECT * FROM chosen(sample.diabetes, label => label, k => 3) LIMIT 3;
-- Which query gives the same columns without a selection?
SELECT sql FROM chosen_sql(sample.diabetes, label => label, k => 3);
