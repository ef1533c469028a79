-- Which measurements of wines should a model have, when nobody wants to choose a method?
-- Expect the name of the selector that did best on rows held out, and by how much.
CREATE TABLE chosen AS SELECT rank, feature, note FROM select_features(sample.wine, label => label, k => 4);
SELECT * FROM chosen ORDER BY rank;
-- And how many of them, when nobody says? Expect a few, with what they are worth on the rows held out.
SELECT rank, feature, round(valid_score, 2) AS valid_score FROM select_features(sample.wine, label => label) ORDER BY rank;
