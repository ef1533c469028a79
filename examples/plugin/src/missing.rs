//! A report: how many values each column lacks.

use pursuit_udfs::{ColumnKind, Problem, Report, Result, Run, Values, report};

report! {
    /// Missing: how many values each feature lacks.
    ///
    /// Counts NULL, NaN and infinity among the rows that have a label.
    #[report(name = "missing", aliases = [])]
    pub struct Missing {
        /// Only features that lack something.
        only_some: bool = false;
    }
}

impl Report for Missing {
    fn columns(&self) -> Vec<(&'static str, ColumnKind)> {
        vec![("feature", ColumnKind::Text), ("missing", ColumnKind::Whole)]
    }

    fn report(&self, problem: &Problem, _: &Run) -> Result<Vec<Values>> {
        let features = problem.features().iter().zip(&problem.seen().missing);
        let listed: Vec<_> = features.filter(|(_, missing)| !self.only_some || **missing > 0).collect();
        Ok(vec![
            Values::texts(listed.iter().map(|(feature, _)| feature.as_str())),
            Values::wholes(listed.iter().map(|(_, missing)| **missing as usize)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pursuit_udfs::testing::Table;

    #[test]
    fn counts_what_is_missing() {
        let table = Table::new().numbers("whole", &[1.0, 2.0, 3.0]).numbers("holes", &[f64::NAN, 2.0, f64::NAN]);
        let problem = table.problem_of_rows(&[1.0, 2.0, 4.0]);
        let some = Missing { only_some: true }.report(&problem, &Run::default()).unwrap();
        assert_eq!(some, [Values::texts(["holes"]), Values::wholes([2])]);
        assert_eq!(Missing::default().report(&problem, &Run::default()).unwrap()[1], Values::wholes([0, 2]));
    }
}
