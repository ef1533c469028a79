use rayon::prelude::*;

use crate::kernels::eigen::symmetric;
use crate::linear::products::Products;
use crate::linear::pursuit::explain;
use crate::{Check, Error, Problem, Random, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// PFA: one feature of each group that varies together.
    ///
    /// Principal feature analysis does not look at the label. The features' principal components are computed, as many as explain `variance` of all variance; a feature's weights in them are a point, and points that are near each other are features that vary
    /// together. The points are parted into `k` groups (k-means, the best of ten to a hundred starts), and the feature nearest to the middle of each is chosen, those of large groups first.
    ///
    /// The label is only used to say what the choice explains of it: `gain` and `train_score`. `k => 'auto'` chooses as many features as there are components. A text or a group is the mean of its columns' points.
    ///
    /// Cost: one pass over the table, then `6 × features³` operations for the components.
    ///
    /// Source: Lu, Cohen, Zhou and Tian, 2007. Feature selection using principal feature analysis.
    #[selector(
        name = "pfa",
        aliases = [],
        labels = Any,
        score = "share of the features that are in its group",
    )]
    pub struct Pfa {
        /// Share of all variance that the components explain.
        variance: f64 = 0.5, Check::Between(0.01, 1.0);
    }
}

/// How often k-means begins anew: as often as so many operations allow, within these bounds; and its steps.
const STARTS: (u64, u64) = (10, 100);
const OPERATIONS: usize = 100_000_000;
const STEPS_MAX: usize = 200;
/// Share of their lengths that the product of two columns has if one repeats the other.
const ALIKE: f64 = 1.0 - 1e-9;

impl Selector for Pfa {
    fn reads(&self) -> Reads {
        Reads::Moments
    }

    fn sees_label(&self) -> bool {
        false
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        run.check()?;
        let products = Products::new(problem, run)?;
        let columns = products.columns();
        let _memory = run.reserve((4 * columns * columns + 8 * columns) * size_of::<f64>())?;
        let (units, repeated) = different(problem, &products, run)?;
        let points = self.points(&units, &products, run)?;
        let dimensions = points.first().map_or(1, Vec::len);
        let k = problem.k.unwrap_or(dimensions.max(problem.must_include.len())).min(units.len());
        let chosen = chosen(&points, k, &forced(problem, &units), run)?;
        let order: Vec<(usize, f64)> = chosen.into_iter().map(|(at, share)| (units[at], share)).collect();
        let mut ranking = explain(problem, &products, run, &order, Some(order.len()))?;
        ranking.passed_over.extend(repeated);
        Ok(ranking)
    }
}

/// Units that differ from each other, in an order that depends on their names alone, and those that repeat one before them.
#[allow(clippy::type_complexity)]
fn different(problem: &Problem, products: &Products, run: &Run) -> Result<(Vec<usize>, Vec<(usize, String)>)> {
    let (mut units, mut repeated): (Vec<usize>, Vec<(usize, String)>) = (Vec::new(), Vec::new());
    for (unit, columns) in products.units.iter().enumerate().filter(|(_, columns)| !columns.is_empty()) {
        run.check()?;
        let cross = if columns.len() == 1 { products.cross(columns.start) } else { Vec::new() };
        let is_same = |other: &&usize| {
            let (own, place) = (products.energies[columns.start], products.units[**other].start);
            products.units[**other].len() == 1
                && cross.get(place).is_some_and(|c| c * c >= ALIKE * own * products.energies[place])
        };
        match units.iter().find(is_same).filter(|_| !problem.must_include.contains(&unit)) {
            Some(first) => repeated.push((unit, format!("repeats {}", problem.units[*first].name))),
            None => units.push(unit),
        }
    }
    units.sort_by_key(|unit| (problem.column_key(problem.units[*unit].columns[0]), *unit));
    Ok((units, repeated))
}

/// The points that must be chosen.
fn forced(problem: &Problem, units: &[usize]) -> Vec<usize> {
    problem.must_include.iter().filter_map(|unit| units.iter().position(|other| other == unit)).collect()
}

impl Pfa {
    /// The point of each unit.
    fn points(&self, units: &[usize], products: &Products, run: &Run) -> Result<Vec<Vec<f64>>> {
        let columns: Vec<usize> = units.iter().flat_map(|unit| products.units[*unit].clone()).collect();
        let n = columns.len();
        let mut matrix = vec![0.0; n * n];
        for (i, column) in columns.iter().enumerate() {
            run.check()?;
            let cross = products.cross(*column);
            columns.iter().enumerate().for_each(|(j, other)| matrix[i * n + j] = cross[*other]);
        }
        run.check()?;
        let Some(eigen) = symmetric(matrix, n, &|| run.check().is_err()) else {
            run.check()?;
            return Err(Error::data("the features' principal components could not be computed"));
        };
        let total: f64 = eigen.values.iter().map(|value| value.max(0.0)).sum();
        let mut explained = 0.0;
        let is_short = |value: &&f64| {
            let goes_on = explained < self.variance * total * (1.0 - 1e-12);
            explained += **value;
            goes_on
        };
        let dimensions = eigen.values.iter().take_while(is_short).count().max(1);
        let mut start = 0;
        let mut points = Vec::with_capacity(units.len());
        for unit in units {
            let width = products.units[*unit].len();
            let mean = |vector: &Vec<f64>| vector[start..start + width].iter().sum::<f64>() / width as f64;
            points.push(eigen.vectors[..dimensions].iter().map(mean).collect());
            start += width;
        }
        Ok(points)
    }
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// Points parted into groups: the group of each point, the middles, and the squared distances to them added up.
struct Parted {
    group: Vec<usize>,
    middles: Vec<Vec<f64>>,
    spread: f64,
}

/// So many points, those that must be first, and the share of all points that are in the group of each.
fn chosen(points: &[Vec<f64>], k: usize, forced: &[usize], run: &Run) -> Result<Vec<(usize, f64)>> {
    let each = STEPS_MAX * points.len() * k.max(1) * points.first().map_or(1, Vec::len);
    let starts = ((OPERATIONS / each.max(1)) as u64).clamp(STARTS.0, STARTS.1);
    let starts = (0..starts).into_par_iter().map(|start| part(points, k.max(1), &mut run.random("pfa", start), run));
    let starts: Vec<Parted> = starts.collect::<Result<_>>()?;
    let best = starts.into_iter().reduce(|a, b| if b.spread < a.spread * (1.0 - 1e-9) { b } else { a });
    let Some(Parted { group, middles, .. }) = best else { return Ok(Vec::new()) };
    let size = |of: usize| group.iter().filter(|other| **other == of).count();
    let share = |at: usize| size(group[at]) as f64 / points.len() as f64;
    // Rounded, because two points alone are equally far from their middle: of those the first is taken, whatever the last bit says.
    let far = |at: usize| (distance(&points[at], &middles[group[at]]) * 1e9).round();
    let mut order: Vec<usize> = (0..points.len()).filter(|at| !forced.contains(at)).collect();
    order.sort_by(|a, b| far(*a).total_cmp(&far(*b)).then(a.cmp(b)));
    // The nearest of each group first, then the second of each, and so on, which only those that are forced make necessary.
    let mut taken = vec![0; middles.len()];
    forced.iter().for_each(|at| taken[group[*at]] += 1);
    let mut turns: Vec<(usize, usize)> = Vec::with_capacity(order.len());
    for at in order {
        turns.push((taken[group[at]], at));
        taken[group[at]] += 1;
    }
    turns.sort_by(|a, b| {
        let sizes = size(group[b.1]).cmp(&size(group[a.1]));
        a.0.cmp(&b.0).then(sizes).then(far(a.1).total_cmp(&far(b.1))).then(a.1.cmp(&b.1))
    });
    let all = forced.iter().copied().chain(turns.into_iter().map(|(_, at)| at));
    Ok(all.take(k).map(|at| (at, share(at))).collect())
}

/// K-means from a random start that prefers points far from each other (Arthur and Vassilvitskii, 2007).
fn part(points: &[Vec<f64>], k: usize, random: &mut Random, run: &Run) -> Result<Parted> {
    let mut middles = vec![points[random.below(points.len())].clone()];
    let mut nearest: Vec<f64> = points.iter().map(|point| distance(point, &middles[0])).collect();
    while middles.len() < k {
        run.check()?;
        let mut at = random.uniform() * nearest.iter().sum::<f64>();
        let found = nearest.iter().position(|near| {
            at -= near;
            at < 0.0
        });
        // Of points that are all in the middles already any will do.
        let next = found.unwrap_or_else(|| random.below(points.len()));
        middles.push(points[next].clone());
        nearest.iter_mut().zip(points).for_each(|(near, point)| *near = near.min(distance(point, &points[next])));
    }
    let mut group = vec![usize::MAX; points.len()];
    let mut spread = 0.0;
    for _ in 0..STEPS_MAX {
        run.check()?;
        let closest = |point: &Vec<f64>| {
            let of = |at: usize| (distance(point, &middles[at]), at);
            (1..k).map(of).fold(of(0), |best, other| if other.0 < best.0 { other } else { best })
        };
        let now: Vec<(f64, usize)> = points.iter().map(closest).collect();
        spread = now.iter().map(|(far, _)| far).sum();
        let is_settled = now.iter().zip(&group).all(|((_, now), before)| now == before);
        group = now.iter().map(|(_, group)| *group).collect();
        if is_settled {
            break;
        }
        for (at, middle) in middles.iter_mut().enumerate() {
            let own: Vec<&Vec<f64>> =
                points.iter().zip(&group).filter(|(_, group)| **group == at).map(|(point, _)| point).collect();
            if own.is_empty() {
                // A group without points begins anew at the point that is farthest from its middle.
                let far = (0..points.len()).fold(0, |best, other| if now[other].0 > now[best].0 { other } else { best });
                middle.clone_from(&points[far]);
                continue;
            }
            for (dimension, value) in middle.iter_mut().enumerate() {
                *value = own.iter().map(|point| point[dimension]).sum::<f64>() / own.len() as f64;
            }
        }
    }
    Ok(Parted { group, middles, spread })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Table;

    /// Three things are measured four times each, with some noise: one of each is chosen, whatever the label is.
    #[test]
    fn one_of_each_group_is_chosen() {
        let (things, noise) = (Table::random(300, 3, 1), Table::random(300, 12, 2));
        let table = (0..12).fold(Table::new(), |table, j| {
            let column: Vec<f64> = things.column(j % 3).iter().zip(noise.column(j)).map(|(x, e)| x + 0.3 * e).collect();
            table.numbers(&format!("x{j}"), &column)
        });
        let select = |label: &[f64]| Pfa { variance: 0.8 }.select(&table.clone().k(3).problem(label), &Run::new(1)).unwrap();
        let (one, other) = (select(things.column(0)), select(noise.column(5)));
        assert_eq!(one.units(), other.units());
        let mut groups: Vec<usize> = one.units().iter().map(|unit| unit % 3).collect();
        groups.sort_unstable();
        assert_eq!(groups, [0, 1, 2]);
        assert!(one.choices.iter().all(|choice| (choice.score - 1.0 / 3.0).abs() < 1e-12));
    }
}
