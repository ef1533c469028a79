use rayon::prelude::*;

use crate::network::samples::Samples;
use crate::network::training::Training;
use crate::neural::contributions::{Layers, Trace};
use crate::neural::workbench::{self, Workbench};
use crate::{Check, Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// DeepLIFT: what each feature adds to a network's predictions.
    ///
    /// Trains a network on all features and shares out, for each row, the difference between what the network says of it and what it says of a reference: by the rescale rule every neuron
    /// passes on as much as its value has changed by its change of input, so that the contributions of all features add up to that difference. Features are ranked by the mean absolute contribution over rows and
    /// outputs; of classes these are log odds.
    ///
    /// The reference is the mean of all rows; with `references` it is so many rows in turn, drawn at random, over which contributions are averaged, which makes them approximate
    /// Shapley values. The columns of a text or of a group contribute together.
    ///
    /// Cost: a training, then `4 × features × hidden × outputs` operations for each of at most 2,000 rows and each reference.
    ///
    /// Source: Shrikumar, Greenside and Kundaje, 2017. Learning important features through propagating activation differences; Lundberg and Lee, 2017. A unified approach to
    /// interpreting model predictions.
    #[selector(
        name = "deeplift",
        aliases = [],
        labels = Any,
        score = "share of all absolute contributions",
    )]
    pub struct Deeplift {
        /// Rows that are references, drawn at random; 0: the mean of all rows is.
        references: usize = 0, Check::Between(0.0, 10000.0);
        ..training: Training;
    }
}

/// Rows whose contributions are worked out.
const ROWS_MAX: usize = 2000;

impl Selector for Deeplift {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        workbench::select(problem, &self.training, run, |bench, most| self.order(bench, most))
    }
}

impl Deeplift {
    fn order(&self, bench: &mut Workbench<'_>, most: usize) -> Result<Vec<(usize, f64)>> {
        bench.train(most, |bench| bench.step(None).map(drop))?;
        let run = bench.run;
        let layers = Layers(bench.trainer.mlp.kept());
        let all = &bench.trainer.samples;
        let few = match all.pass_rows(&all.all()) > ROWS_MAX {
            true => Some(all.some(ROWS_MAX, &mut run.random("contributions", 0), run)?),
            false => None,
        };
        let samples: &Samples = few.as_ref().unwrap_or(all);
        let wide = |values: &[f32]| values.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
        let references: Vec<Vec<f64>> = match self.references {
            0 => vec![vec![0.0; bench.candidates.columns.len()]],
            // Drawn as often as weights say.
            count => {
                let drawn = all.some(count, &mut run.random("references", 0), run)?;
                (0..drawn.rows()).map(|row| wide(&drawn.row(row))).collect()
            }
        };
        let traced: Vec<(&Vec<f64>, Trace)> = references.iter().map(|reference| (reference, layers.trace(reference))).collect();
        let outputs = layers.0.last().map_or(1, |layer| layer.bias.len());
        let candidates = &bench.candidates;
        let of_row = |row: usize| -> Result<Vec<f64>> {
            run.check()?;
            let x = wide(&samples.row(row));
            let own = layers.trace(&x);
            let mut total = vec![0.0; candidates.len()];
            for output in 0..outputs {
                let mut parts = vec![0.0; x.len()];
                for (reference, trace) in &traced {
                    let found = layers.contributions(&x, &own, (reference, trace), output);
                    parts.iter_mut().zip(found).for_each(|(part, found)| *part += found / traced.len() as f64);
                }
                for (total, inputs) in total.iter_mut().zip(&candidates.inputs) {
                    *total += samples.weight(row) * parts[inputs.clone()].iter().sum::<f64>().abs();
                }
            }
            Ok(total)
        };
        let _memory = run.reserve(samples.rows() * candidates.len() * size_of::<f64>())?;
        let parts = (0..samples.rows()).into_par_iter().map(of_row).collect::<Result<Vec<_>>>()?;
        // Summed in the order of the rows, so that threads do not show.
        let mut scores = vec![0.0; candidates.len()];
        for part in parts {
            scores.iter_mut().zip(part).for_each(|(score, part)| *score += part);
        }
        Ok(bench.ranked(&scores, most))
    }
}
