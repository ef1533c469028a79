use super::*;
use crate::judging::folds::{Folds, Holding};
use crate::judging::metric::Criterion;
use crate::testing::Table;

/// The paper's readout keeps its coefficients shorter, and so fits the rows it learns from less closely.
#[test]
fn the_bounded_readout_is_shorter() {
    let table = Table::random(200, 6, 6);
    let label: Vec<f64> = (0..200).map(|row| table.column(0)[row].abs() + table.column(1)[row] * table.column(2)[row]).collect();
    let folds = Folds::new(&table.problem_of_rows(&label), Holding::Share(0.2), Criterion::Auto, &Run::new(0)).unwrap();
    let length = |readout, ridge| {
        let network = Ssfn::new(&folds, 30, readout, Some(ridge), &Run::new(1));
        let ready = network.ready(3, &Run::new(0)).unwrap();
        let mut scratch = ready.scratch();
        ready.products(&[0, 1, 2], &mut scratch, &Run::new(0)).unwrap();
        ready.learn(0, Some(ridge), &mut scratch);
        let inputs = scratch.coefficients[0].iter().zip(&ready.is_input);
        inputs.map(|(c, is_input)| c * c * is_input).sum::<f64>().sqrt()
    };
    let (bounded, free) = (length(Readout::Admm, 1e-9), length(Readout::Ridge, 1e-9));
    assert!(bounded < free && bounded > 0.1, "{bounded} {free}");
}
