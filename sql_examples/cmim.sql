-- Which pixels tell digits apart, each saying what none of the others does?
SELECT rank, feature, round(score, 3) AS new_information FROM cmim(sample.digits, label => label, k => 8);
