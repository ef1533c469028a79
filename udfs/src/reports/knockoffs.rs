use crate::contract::report::{Kind, Repeats, Report, Values};
use crate::contract::selector::{Reads, Selector};
use crate::judging::answer::once;
use crate::judging::knockoffs::imitate;
use crate::settings::repeated::Repeated;
use crate::{Check, Error, Parting, Problem, Result, Run, report};

report! {
    /// Which features, with the false discovery rate held.
    ///
    /// Every feature gets a knockoff, which correlates with the other features as it does itself and with the label by chance alone. The selector ranks features and
    /// knockoffs together. A feature that carries nothing comes before its knockoff as often as behind it, so that the knockoffs that come before their features tell how many
    /// false ones there are among the features that come before their knockoffs.
    ///
    /// `statistic` is the earlier rank of the pair counted from the end, negative if the knockoff was first; `q_value` the smallest rate at which the feature
    /// is `chosen`. At `fdr => 0.1` a tenth of what is chosen is false, on average over many such answers. A small rate needs many discoveries: at 0.1 either none
    /// is made or at least ten.
    ///
    /// The promise holds for a label that is linear in the features with normal noise, whatever the features are; of two classes it is an approximation. It needs twice as many
    /// rows as columns. Features that nearly depend on each other have knockoffs that are nearly themselves, and little is found among them. A text or a
    /// group is one feature, with knockoffs of all its columns. Another `seed` draws other knockoffs.
    ///
    /// Cost: one pass over the table, then a ranking of twice as many features.
    ///
    /// Source: Barber and Candès, 2015. Controlling the false discovery rate via knockoffs, fixed design, equi-correlated. For texts and groups: Dai and Barber, 2016.
    #[report(name = "knockoffs", aliases = [], labels = NumberOrTwoClasses)]
    pub struct Knockoffs {
        /// The share of false ones among what is chosen, on average.
        fdr: f64 = 0.1, Check::Between(0.001, 0.999);
        ..repeated: Repeated;
    }
}

impl Report for Knockoffs {
    fn columns(&self) -> Vec<(&'static str, Kind)> {
        vec![
            ("rank", Kind::Whole),
            ("feature", Kind::Text),
            ("statistic", Kind::Number),
            ("q_value", Kind::Number),
            ("chosen", Kind::Flag),
        ]
    }

    fn repeats(&self) -> Option<Repeats> {
        Some(self.repeated.repeats())
    }

    fn reads(&self, _: Option<&dyn Selector>) -> Reads {
        Reads::Moments
    }

    fn parting(&self, _: Option<usize>, columns: usize, seed: u64) -> Parting {
        Parting::for_folds(1, columns, seed)
    }

    fn unused(&self, option: &str) -> Option<&'static str> {
        match option {
            "k" | "folds" | "must_include" | "costs" | "budget" => Some("a selection of its own, and here `fdr` decides"),
            _ => None,
        }
    }

    fn report(&self, _: &Problem, _: &Run) -> Result<Vec<Values>> {
        Err(Error::call("needs a selector to repeat"))
    }

    fn report_on(&self, selector: Option<&dyn Selector>, problem: &Problem, run: &Run) -> Result<Vec<Values>> {
        let Some(selector) = selector else { return self.report(problem, run) };
        if selector.reads() != Reads::Moments {
            return Err(Error::call(
                "`selector` must read moments, because knockoffs have no rows; SELECT selector FROM selectors() WHERE reads = 'moments'",
            ));
        }
        let imitated = imitate(problem, run)?;
        let ranking = once(selector, &imitated.problem, run)?.units();
        let mut statistics = vec![0.0; problem.units.len()];
        for (rank, unit) in ranking.iter().enumerate() {
            let (feature, is_knockoff) = imitated.stands_for[*unit];
            if statistics[feature] == 0.0 {
                let early = (imitated.problem.units.len() - rank) as f64;
                statistics[feature] = if is_knockoff { -early } else { early };
            }
        }
        let mut order: Vec<usize> = (0..problem.units.len()).filter(|unit| statistics[*unit] != 0.0).collect();
        order.sort_by(|a, b| statistics[*b].total_cmp(&statistics[*a]).then(a.cmp(b)));
        let q_values = q_values(&order.iter().map(|unit| statistics[*unit]).collect::<Vec<_>>());
        Ok(vec![
            Values::wholes(1..=order.len()),
            Values::texts(order.iter().map(|unit| problem.units[*unit].name.as_str())),
            Values::numbers(order.iter().map(|unit| statistics[*unit])),
            Values::Number(q_values.clone()),
            Values::Flag(q_values.iter().map(|q| Some(q.is_some_and(|q| q <= self.fdr))).collect()),
        ])
    }
}

/// For statistics, the largest first, the smallest rate at which each is chosen: one more than the knockoffs that came as early as it, by the features that did,
/// or less if a later one has less. None of those whose knockoff was first.
fn q_values(statistics: &[f64]) -> Vec<Option<f64>> {
    let rate = |threshold: f64| {
        let features = statistics.iter().filter(|w| **w >= threshold).count();
        let knockoffs = statistics.iter().filter(|w| **w <= -threshold).count();
        ((1 + knockoffs) as f64 / features.max(1) as f64).min(1.0)
    };
    let mut least = 1.0f64;
    let mut values: Vec<Option<f64>> = statistics.iter().map(|_| None).collect();
    for at in (0..statistics.len()).rev().filter(|at| statistics[*at] > 0.0) {
        least = least.min(rate(statistics[at]));
        values[at] = Some(least);
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use crate::registry::selectors;
    use crate::testing::Table;

    #[test]
    fn rates_by_hand() {
        let q = q_values(&[9.0, 8.0, 6.0, 5.0, -4.0, -7.0]);
        // One knockoff is earlier than 6 and than 5, none earlier than 8.
        assert_eq!(q, [Some(0.5), Some(0.5), Some(0.5), Some(0.5), None, None]);
        assert_eq!(q_values(&[3.0, -5.0]), [Some(1.0), None]);
    }

    /// Two hundred tables of 40 features, of which 15 carry the label, correlated by a common factor.
    #[test]
    fn the_false_discovery_rate_is_held() {
        for (name, fdr) in [("omp", 0.1), ("omp", 0.3), ("lasso", 0.1)] {
            let selector = selectors().into_iter().find(|spec| spec.name == name).unwrap().selector(&Settings::new()).unwrap();
            let report = Knockoffs { fdr, ..Knockoffs::default() };
            let (mut false_rate, mut power, runs) = (0.0, 0.0, 200);
            for seed in 0..runs {
                let noise = Table::random(300, 42, seed);
                let column = |j: usize| -> Vec<f64> {
                    noise.column(j).iter().zip(noise.column(40)).map(|(x, common)| x + 0.5 * common).collect()
                };
                let table = (0..40).fold(Table::new(), |table, j| table.numbers(&format!("x{j}"), &column(j)));
                let label: Vec<f64> = (0..300)
                    .map(|row| (0..15).map(|j| 0.35 * table.column(j)[row]).sum::<f64>() + noise.column(41)[row])
                    .collect();
                let values = report.report_on(Some(&*selector), &table.problem(&label), &Run::new(seed)).unwrap();
                let Values::Flag(chosen) = &values[4] else { panic!("the last column is a flag") };
                let names: Vec<usize> = (0..chosen.len())
                    .filter(|row| chosen[*row] == Some(true))
                    .map(|row| values[1].text(row).unwrap()[1..].parse().unwrap())
                    .collect();
                let right = names.iter().filter(|j| **j < 15).count() as f64;
                false_rate += (names.len() as f64 - right) / names.len().max(1) as f64 / runs as f64;
                power += right / 15.0 / runs as f64;
            }
            // The standard error over the runs is below 0.01.
            assert!(false_rate <= fdr + 0.02, "{name} {fdr}: {false_rate}, power {power}");
            assert!(power > 0.5, "{name} {fdr}: power {power}");
        }
    }
}
