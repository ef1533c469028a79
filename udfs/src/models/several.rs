//! Several networks that differ in their random neurons, judged together: what one owes to luck is spread over all of them.

use super::metric::Tally;
use super::ssfn::Ssfn;
use super::{Fitted, Predictor, Stage};
use crate::{Result, Run};

#[derive(Debug, Clone)]
pub(crate) struct Several<'a> {
    members: Vec<Ssfn<'a>>,
}

impl<'a> Several<'a> {
    /// So many networks, each made with random numbers of its own.
    pub fn new(count: usize, run: &Run, make: impl Fn(&Run) -> Ssfn<'a>) -> Self {
        Self { members: (0..count as u64).map(|member| make(&run.with_seed(member))).collect() }
    }
}

impl<'a> Predictor<'a> for Several<'a> {
    fn stage(&self, width: usize) -> Box<dyn Stage + '_> {
        Box::new(Stages(self.members.iter().map(|member| member.stage(width)).collect()))
    }

    /// One network is enough to tell who is worth the others.
    fn sketch(&self) -> Option<Box<dyn Predictor<'a> + 'a>> {
        self.members[0].sketch()
    }

    fn fit(&mut self, unit: &[usize], run: &Run) -> Result<Fitted> {
        let fitted = self.members.iter_mut().map(|member| member.fit(unit, run)).collect::<Result<Vec<Fitted>>>()?;
        let (train, valid): (Vec<Tally>, Vec<Tally>) = fitted.into_iter().map(|fitted| (fitted.train, fitted.valid)).unzip();
        Ok(Fitted { train: Tally::mean(&train), valid: Tally::mean(&valid) })
    }

    fn keep(&mut self, unit: &[usize]) {
        self.members.iter_mut().for_each(|member| member.keep(unit));
    }

    fn copy(&self) -> Box<dyn Predictor<'a> + 'a> {
        Box::new(self.clone())
    }
}

struct Stages<'a>(Vec<Box<dyn Stage + 'a>>);

impl Stage for Stages<'_> {
    fn loss(&self, unit: &[usize], run: &Run) -> Result<f64> {
        let losses = self.0.iter().map(|stage| stage.loss(unit, run)).collect::<Result<Vec<f64>>>()?;
        Ok(losses.iter().sum::<f64>() / losses.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::sample::{Holding, Sample};
    use crate::models::ssfn::Readout;
    use crate::testing::Table;

    /// Of one it is that one; of three, the mean of what each would say alone.
    #[test]
    fn the_mean_of_its_members() {
        let table = Table::random(60, 3, 1);
        let label: Vec<f64> = table.column(1).iter().map(|x| x.abs()).collect();
        let sample = Sample::new(&table.problem_of_rows(&label), Holding::Default, &Run::new(0)).unwrap();
        let run = Run::new(3);
        let make = |run: &Run| Ssfn::new(&sample, 12, Readout::Ridge, Some(1e-2), run);
        let loss = |predictor: &dyn Predictor<'_>| predictor.stage(1).loss(&[1], &run).unwrap();
        let members = [0, 1, 2].map(|member| loss(&make(&run.with_seed(member))));
        assert_eq!(loss(&Several::new(1, &run, make)), members[0]);
        let mut three = Several::new(3, &run, make);
        let mean = members.iter().sum::<f64>() / 3.0;
        assert!(members[0] != members[1] && (loss(&three) - mean).abs() < 1e-12 * mean);
        assert!((three.fit(&[1], &run).unwrap().valid.squared - mean).abs() < 1e-9 * mean);
    }
}
