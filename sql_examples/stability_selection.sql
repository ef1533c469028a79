-- How sure is a ranking? Select by a hundred halves of the rows, and count.
-- Expect some features in every half, and others that depend on which half it was.
SELECT rank, feature, round(frequency, 2) AS frequency, round(standard_error, 2) AS standard_error, round(false_selections_unimodal, 2) AS false_at_most
FROM stability_selection(sample.diabetes, label => label, k => 5, resamples => 100);
