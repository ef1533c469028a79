use crate::linear::classifier::{Classifier, Design, Loss};
use crate::linear::penalized::Asked;
use crate::linear::products::Products;
use crate::linear::pursuit::explain;
use crate::network::samples::Inputs;
use crate::neural::candidates::Candidates;
use crate::{Check, Label, Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// Logistic regression under a LASSO penalty.
    ///
    /// Lowers the penalty of `mean log loss + λ Σ ‖B_j‖` from where nothing is chosen to where `k` features are; `B_j` are the coefficients of a feature for all classes, so that it comes in for all of them at once. For two classes that is
    /// the log loss with `λ Σ |β_j|`. The intercept is free of the penalty, and features have variance 1.
    ///
    /// `lasso` does the same with squares of 0/1 columns and needs only one pass over the table; the log loss does not mind rows that are far on the right side. `penalty => 0.05` asks for the model at that penalty instead of for a number of
    /// features: `score` is then the length of a feature's coefficients. scikit-learn's `C` is `1 / (rows × penalty)`. `coefficient`, for two classes, is the penalised one, in log odds.
    ///
    /// Cost: `rows × features × classes` multiplications for each penalty, and some dozen times `rows × chosen × classes`.
    ///
    /// Source: Friedman, Hastie and Tibshirani, 2010. Regularization paths for generalized linear models via coordinate descent.
    #[selector(
        name = "logistic_lasso",
        aliases = [],
        labels = Classes,
        score = "penalty at which the feature enters",
    )]
    pub struct LogisticLasso {
        /// The penalty, instead of a number of features.
        penalty: Option<f64> = None, Check::Between(1e-6, 100.0);
    }
}

impl Selector for LogisticLasso {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn has_size(&self) -> bool {
        self.penalty.is_some()
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        rank(Loss::Logistic, self.penalty, problem, run)
    }
}

/// Ranks features by a linear model of classes under a penalty.
pub(super) fn rank(loss: Loss, penalty: Option<f64>, problem: &Problem, run: &Run) -> Result<Ranking> {
    let rows = problem.rows();
    let candidates = Candidates::new(problem, rows, run)?;
    let factors = Inputs::new(problem, rows, candidates.columns.clone()).factors;
    let classes = if let Label::Classes(classes) = &problem.label { classes.len() } else { 2 };
    let mut units = vec![0..0; problem.units.len()];
    candidates.units.iter().zip(&candidates.inputs).for_each(|(unit, inputs)| units[*unit] = inputs.clone());
    let design = Design {
        columns: candidates.columns.iter().map(|column| &rows.columns[*column][..]).zip(factors).collect(),
        units,
        classes,
        targets: &rows.targets,
        weights: &rows.weights,
    };
    let mut weights = vec![1.0; problem.units.len()];
    problem.must_include.iter().for_each(|unit| weights[*unit] = 0.0);
    let asked = Asked { problem, penalty, rows: rows.weight(), run };
    let mut ranking = asked.ranking(
        || Classifier::new(&design, loss, weights.clone(), run),
        |order, k| {
            let products = Products::of_units(problem, |unit| order.iter().any(|(other, _)| *other == unit), run)?;
            explain(problem, &products, run, order, k)
        },
        |point, ranking| {
            for choice in &mut ranking.choices {
                let (inputs, is_number) = (&design.units[choice.unit], problem.units[choice.unit].is_number);
                let is_told = is_number && classes == 2 && inputs.len() == 1;
                choice.coefficient = is_told.then(|| point.coefficients[inputs.start] * design.columns[inputs.start].1);
            }
        },
    )?;
    ranking.passed_over.extend(candidates.repeated);
    Ok(ranking)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear::path::Penalized;
    use crate::testing::planted;

    /// The conditions of the optimum, from the definition of the losses: what is in is pulled by exactly the penalty, and nothing else by more.
    #[test]
    fn the_conditions_of_the_optimum_hold() {
        let (table, label) = planted(150, 7, &[1, 4], 1.0, 6);
        for classes in [2, 3] {
            let class = |y: &f64| if classes == 2 { f64::from(*y > 0.0) } else { f64::from(*y > -1.0) + f64::from(*y > 1.0) };
            let targets: Vec<f64> = label.iter().map(class).collect();
            let centred: Vec<Vec<f64>> = (0..7)
                .map(|j| {
                    let mean = table.column(j).iter().sum::<f64>() / 150.0;
                    table.column(j).iter().map(|x| x - mean).collect()
                })
                .collect();
            let columns = centred.iter().map(|column| (&column[..], 1.0)).collect();
            let units = vec![0..1, 1..2, 2..4, 4..5, 5..6, 6..7];
            let design = Design { columns, units: units.clone(), classes, targets: &targets, weights: &[] };
            for loss in [Loss::Logistic, Loss::SquaredHinge] {
                let mut model = Classifier::new(&design, loss, vec![1.0; 6], &Run::default()).unwrap();
                let penalty = 0.1 * model.first(&Run::default()).unwrap();
                model.descend(penalty, &Run::default()).unwrap();
                let (beta, q) = (model.coefficients(), if classes == 2 { 1 } else { classes });
                let errors = |row: usize| -> Vec<f64> {
                    let f: Vec<f64> = (0..q)
                        .map(|c| beta[7 * q + c] + (0..7).map(|j| centred[j][row] * beta[j * q + c]).sum::<f64>())
                        .collect();
                    let is = |c: usize| targets[row] as usize == if q == 1 { 1 } else { c };
                    match loss {
                        Loss::SquaredHinge => {
                            let one = |c: usize| {
                                let y = if is(c) { 1.0 } else { -1.0 };
                                -2.0 * y * f64::max(0.0, 1.0 - y * f[c])
                            };
                            (0..q).map(one).collect()
                        }
                        Loss::Logistic if q == 1 => vec![1.0 / (1.0 + (-f[0]).exp()) - f64::from(is(0))],
                        Loss::Logistic => {
                            let total: f64 = f.iter().map(|f| f.exp()).sum();
                            (0..q).map(|c| f[c].exp() / total - f64::from(is(c))).collect()
                        }
                    }
                };
                let errors: Vec<Vec<f64>> = (0..150).map(errors).collect();
                let slope = |j: usize, c: usize| (0..150).map(|row| centred[j][row] * errors[row][c]).sum::<f64>() / 150.0;
                let mut inside = 0;
                for unit in &units {
                    let groups: Vec<Vec<usize>> = match loss {
                        Loss::Logistic => vec![(0..q).collect()],
                        Loss::SquaredHinge => (0..q).map(|c| vec![c]).collect(),
                    };
                    for outputs in groups {
                        let pairs: Vec<(usize, usize)> =
                            unit.clone().flat_map(|j| outputs.iter().map(move |c| (j, *c))).collect();
                        let length = pairs.iter().map(|(j, c)| beta[j * q + c].powi(2)).sum::<f64>().sqrt();
                        let pull = pairs.iter().map(|(j, c)| slope(*j, *c).powi(2)).sum::<f64>().sqrt();
                        if length > 0.0 {
                            inside += 1;
                            assert!((pull - penalty).abs() < 1e-8, "{loss:?} {classes} {unit:?}: {pull} {penalty}");
                            for (j, c) in pairs {
                                assert!((slope(j, c) + penalty * beta[j * q + c] / length).abs() < 1e-8);
                            }
                        } else {
                            assert!(pull <= penalty * (1.0 + 1e-7), "{loss:?} {classes} {unit:?}: {pull} {penalty}");
                        }
                    }
                }
                assert!((2..6 * q).contains(&inside), "{loss:?} {classes}: {inside}");
                for c in 0..q {
                    let pull = errors.iter().map(|errors| errors[c]).sum::<f64>() / 150.0;
                    let limit = if loss == Loss::Logistic { 1e-8 } else { penalty + 1e-8 };
                    assert!(pull.abs() <= limit, "{loss:?} {classes}: the intercept is pulled by {pull}");
                }
            }
        }
    }
}
