//! Which selector when: advice by the shape of the data, as a table.

/// A shape of data or a wish, and who serves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    pub when: &'static str,
    pub function: &'static str,
    pub why: &'static str,
    pub sees: &'static str,
    pub misses: &'static str,
}

macro_rules! advice {
    ($($when:literal, $function:literal, $why:literal, $sees:literal, $misses:literal;)*) => {
        &[$(Advice { when: $when, function: $function, why: $why, sees: $sees, misses: $misses },)*]
    };
}

/// In the order in which people ask.
pub const WHICH: &[Advice] = advice! {
    "you do not want to choose", "select_features", "tries several and judges them by rows held out", "what the best of them sees", "time: up to 30 s";
    "a first look, any number of rows", "omp", "one pass over the table, then milliseconds", "linear effects, jointly", "products, thresholds, U shapes";
    "one column at a time is enough", "correlation", "one pass, and everybody knows what it means", "linear effects, each alone", "that two columns say the same";
    "the whole path of a penalty", "lasso", "says when each column enters and leaves", "linear effects, jointly", "products; more than two classes";
    "a network will use the columns", "sequential_attention", "trains one network whose inputs compete", "products, maxima, thresholds", "parity of few rows";
    "few rows, and each column must earn its place", "neural_greedy_pursuit", "every step is judged by rows held out", "what its predictor sees", "pairs that are useless apart; many columns";
    "thresholds, mixed types, outliers", "boosting", "asks of a column only what others have not said", "thresholds, interactions", "smooth sums need many trees";
    "columns that say nearly the same share the credit", "random_forest", "trees on samples of rows and columns", "thresholds, interactions", "redundancy";
    "columns cost money, row by row", "datum_wise", "asks for a row's columns one by one and stops early", "what linear scores of known columns see", "numbers as labels";
    "how sure is a ranking", "stability_selection", "repeats a selector on halves of the rows", "what its selector sees", "one number per column, no model";
    "no more false finds than a share", "knockoffs", "compares each column with a copy that knows nothing", "what its selector sees", "fewer rows than columns";
    "how good is the whole way", "evaluate", "selects and trains anew in each fold", "rows that neither has seen", "";
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_functions_that_there_are() {
        let known: Vec<&str> = crate::selectors().into_iter().chain(crate::reports()).map(|spec| spec.name).collect();
        assert!(WHICH.iter().all(|advice| known.contains(&advice.function)));
    }
}
