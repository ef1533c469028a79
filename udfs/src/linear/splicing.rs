//! The best set of a size, by splicing: some of the chosen are exchanged for as many others, as long as that explains more (Zhu et al., 2020).

use crate::kernels::cholesky::Cholesky;
use crate::linear::products::Products;
use crate::{Result, Run};

/// A set of units and what it explains.
#[derive(Debug, Clone)]
pub(crate) struct Subset {
    pub units: Vec<usize>,
    /// The share of the label's variance that is not explained.
    pub unexplained: f64,
    /// What the label would lose without each, if it were orthogonal to the others.
    losses: Vec<f64>,
    /// What each other unit could add at most, if it were orthogonal to those chosen; 0 of the chosen.
    gains: Vec<f64>,
}

/// The least that an exchange must explain in addition.
const BETTER: f64 = 1e-10;
/// Units that are exchanged at once, at most.
const EXCHANGED: usize = 5;

pub(crate) struct Splicing<'a> {
    products: &'a Products,
    /// Units that are in every set.
    forced: &'a [usize],
    crosses: std::collections::BTreeMap<usize, Vec<f64>>,
}

impl<'a> Splicing<'a> {
    pub fn new(products: &'a Products, forced: &'a [usize]) -> Self {
        Self { products, forced, crosses: Default::default() }
    }

    /// Least squares on some units; `None` if they depend on each other.
    pub fn fit(&mut self, units: &[usize], run: &Run) -> Result<Option<Subset>> {
        run.check()?;
        let (products, q) = (self.products, self.products.labels);
        let columns: Vec<usize> = units.iter().flat_map(|unit| products.units[*unit].clone()).collect();
        for column in &columns {
            if !self.crosses.contains_key(column) {
                self.crosses.insert(*column, products.cross(*column));
            }
        }
        let crosses: Vec<&Vec<f64>> = columns.iter().map(|column| &self.crosses[column]).collect();
        let Some(factor) = Cholesky::of(columns.len(), |i, j| crosses[i][columns[j]]) else { return Ok(None) };
        let mut residual = products.correlations.clone();
        let mut squares = vec![0.0; units.len()];
        let (mut explained, mut column_of) = (0.0, Vec::with_capacity(columns.len()));
        units.iter().enumerate().for_each(|(at, unit)| column_of.extend(products.units[*unit].clone().map(|_| at)));
        for label in 0..q {
            let goal: Vec<f64> = columns.iter().map(|column| products.correlations[column * q + label]).collect();
            let mut beta = goal.clone();
            factor.solve(&mut beta);
            explained += goal.iter().zip(&beta).map(|(c, b)| c * b).sum::<f64>();
            for (at, b) in beta.iter().enumerate() {
                squares[column_of[at]] += b * b * products.energies[columns[at]];
                residual.iter_mut().skip(label).step_by(q).zip(crosses[at]).for_each(|(c, cross)| *c -= cross * b);
            }
        }
        let gain = |unit: usize| {
            let of = |column: usize| {
                residual[column * q..(column + 1) * q].iter().map(|c| c * c).sum::<f64>() / products.energies[column]
            };
            if units.contains(&unit) { 0.0 } else { products.units[unit].clone().map(of).sum() }
        };
        let gains = (0..products.units.len()).map(gain).collect();
        Ok(Some(Subset { units: units.to_vec(), unexplained: (1.0 - explained).max(0.0), losses: squares, gains }))
    }

    /// The best set found that differs from the one given by exchanges, and has as many units.
    pub fn improve(&mut self, start: &[usize], run: &Run) -> Result<Option<Subset>> {
        let Some(mut best) = self.fit(start, run)? else { return Ok(None) };
        loop {
            let free: Vec<usize> = (0..best.units.len()).filter(|at| !self.forced.contains(&best.units[*at])).collect();
            let mut weakest = free;
            weakest.sort_by(|a, b| best.losses[*a].total_cmp(&best.losses[*b]).then(b.cmp(a)));
            let mut strongest: Vec<usize> = (0..best.gains.len()).filter(|unit| best.gains[*unit] > 0.0).collect();
            strongest.sort_by(|a, b| best.gains[*b].total_cmp(&best.gains[*a]).then(a.cmp(b)));
            let mut found: Option<Subset> = None;
            for size in 1..=EXCHANGED.min(weakest.len()).min(strongest.len()) {
                let out = &weakest[..size];
                let mut units: Vec<usize> =
                    (0..best.units.len()).filter(|at| !out.contains(at)).map(|at| best.units[at]).collect();
                units.extend(&strongest[..size]);
                let least = found.as_ref().unwrap_or(&best).unexplained;
                found = self.fit(&units, run)?.filter(|trial| trial.unexplained < least - BETTER).or(found);
            }
            let found = if found.is_some() { found } else { self.exchange(&best, run)? };
            match found {
                Some(better) => best = better,
                None => return Ok(Some(best)),
            }
        }
    }

    /// The best set that has one unit less of these, and the one that then promises most. Splicing looks at what counts least beside the others, and so never parts with a unit that
    /// stands in for two.
    fn exchange(&mut self, best: &Subset, run: &Run) -> Result<Option<Subset>> {
        let mut found: Option<Subset> = None;
        for out in best.units.iter().filter(|unit| !self.forced.contains(unit)) {
            let others: Vec<usize> = best.units.iter().copied().filter(|unit| unit != out).collect();
            let Some(rest) = self.fit(&others, run)? else { continue };
            let open = (0..rest.gains.len()).map(|unit| Some(rest.gains[unit]).filter(|_| unit != *out));
            let Some((next, _)) = crate::kernels::argmax(open) else { continue };
            if rest.gains[next] <= 0.0 {
                continue;
            }
            let units: Vec<usize> = others.into_iter().chain([next]).collect();
            let least = found.as_ref().unwrap_or(best).unexplained;
            found = self.fit(&units, run)?.filter(|trial| trial.unexplained < least - BETTER).or(found);
        }
        Ok(found)
    }
}
