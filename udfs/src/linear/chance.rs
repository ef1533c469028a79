//! What a unit of several columns explains beyond chance.
//!
//! Of a label that has nothing to do with them `m` columns explain a share of about `m / n`, `n` the degrees of freedom that are left, where one column
//! explains `1 / n`. So a unit is compared by its stand-in: the single column that it is worth. That explains what the unit does, less what its
//! further columns would by chance (as an adjusted R² has it), less a margin for how much further such an estimate scatters than that of one column. A single
//! column is its own stand-in, to the last digit, and with many rows a unit's explains nearly what the unit does.

/// Standard deviations in the margin. With it a useless unit is worth as much as a single column with a correlation of three standard errors in
/// less than one case of a hundred.
const MARGIN: f64 = 3.5;

/// The share of the label that stands for the share that `columns` explain, out of `free` degrees of freedom. A label of several columns scatters
/// the less, the more `dimensions` it has.
pub(crate) fn stand_in(share: f64, columns: f64, free: f64, dimensions: f64) -> f64 {
    if columns <= 1.0 || share <= 0.0 {
        return share;
    }
    // Never less than the mean of its columns, so that useless units still have an order.
    let least = share / columns;
    let rest = free - columns;
    if rest <= 0.0 {
        return least;
    }
    let adjusted = share - (columns - 1.0) * (1.0 - share) / rest;
    if adjusted <= least {
        return least;
    }
    // The scatter of a noncentral χ² of so many degrees of freedom, on the scale of a share; and the margin if there is so much of a signal.
    let scale = (1.0 - share) / rest;
    if scale <= 0.0 {
        return adjusted;
    }
    let scatter = |columns: f64, signal: f64| ((2.0 * columns + 4.0 * signal / scale) / dimensions).sqrt() * scale;
    let margin = |signal: f64| MARGIN * (scatter(columns, signal) - scatter(1.0, signal));
    // What is left of it when all of it might be chance.
    let signal = (adjusted - margin(0.0)).max(0.0);
    if signal > 0.0 { (adjusted - margin(signal)).max(least) } else { least }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;

    #[test]
    fn a_single_column_stands_for_itself_and_little_is_left_of_a_full_set() {
        assert_eq!(stand_in(0.3, 1.0, 100.0, 1.0), 0.3);
        assert!((stand_in(0.9, 100.0, 100.0, 1.0) - 0.009).abs() < 1e-15);
        assert!((stand_in(0.999_999, 5.0, 100.0, 1.0) - 1.0).abs() < 1e-5);
        assert!(stand_in(0.5, 20.0, 1e6, 1.0) > 0.4999);
    }

    /// The more columns, the less a share is worth; the larger the share, the more.
    #[test]
    fn order_is_kept() {
        for free in [60.0, 400.0, 1e6] {
            let of = |columns: f64, share: f64| stand_in(share, columns, free, 1.0);
            for columns in [2.0, 7.0, 40.0] {
                let mut before = 0.0;
                for share in (1..1000).map(|i| f64::from(i) / 1000.0) {
                    let now = of(columns, share);
                    assert!(now > before && now < share && now < of(columns - 1.0, share), "{free} {columns} {share}");
                    before = now;
                }
            }
        }
    }

    /// Shares drawn by chance are rarely worth much, whatever the number of columns.
    #[test]
    fn by_chance_a_unit_is_worth_no_more_than_a_column() {
        let mut random = Run::new(1).random("chance", 0);
        let mut squares = |count: usize| (0..count).map(|_| random.normal().powi(2)).sum::<f64>();
        for columns in [3, 12, 48] {
            let share = |explained: f64, rest: f64| explained / (explained + rest);
            let units: Vec<f64> = (0..2000).map(|_| share(squares(columns), squares(399 - columns))).collect();
            // A correlation of 3 standard errors.
            let many = units.iter().filter(|share| stand_in(**share, columns as f64, 399.0, 1.0) > 9.0 / 399.0).count();
            assert!(many <= 20, "{columns}: {many}");
        }
    }
}
