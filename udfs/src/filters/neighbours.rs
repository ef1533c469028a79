//! Mutual information from the distances to nearest neighbours, without bins: Kraskov, Stögbauer and Grassberger (2004) for two numbers, Ross (2014) for a number and classes.
//!
//! Both count what is nearer than a neighbour, and so need values that differ. Those that are equal are moved apart by some noise, far less than they differ otherwise. It
//! follows from the values and from how many equal ones there are, not from the place in the table.

use crate::kernels::tails::digamma;
use crate::{Result, Run};

/// Points between two looks at whether the run was cancelled.
const POINTS: usize = 4096;

/// The noise, as a share of a value's usual size.
const NOISE: f64 = 1e-10;

/// Points in order of their values.
struct Line {
    /// Their places, by value.
    order: Vec<usize>,
    values: Vec<f64>,
}

impl Line {
    fn new(values: &[f64], points: impl Iterator<Item = usize>) -> Self {
        let mut order: Vec<usize> = points.collect();
        order.sort_by(|a, b| values[*a].total_cmp(&values[*b]).then(a.cmp(b)));
        Self { values: order.iter().map(|at| values[*at]).collect(), order }
    }

    /// How many are nearer to a value than a distance, itself included.
    fn nearer(&self, value: f64, distance: f64) -> usize {
        let low = self.values.partition_point(|other| value - other >= distance);
        let high = self.values.partition_point(|other| other - value < distance);
        high.saturating_sub(low).max(1)
    }

    /// The neighbours of a place, the nearest first: their places and distances.
    fn outwards(&self, at: usize) -> impl Iterator<Item = (usize, f64)> {
        let value = self.values[at];
        let (mut low, mut high) = (at, at + 1);
        std::iter::from_fn(move || {
            let left = if low > 0 { value - self.values[low - 1] } else { f64::INFINITY };
            let right = if high < self.values.len() { self.values[high] - value } else { f64::INFINITY };
            if left.min(right).is_infinite() {
                return None;
            }
            if left <= right {
                low -= 1;
                Some((low, left))
            } else {
                high += 1;
                Some((high - 1, right))
            }
        })
    }
}

/// Rows as points, each as often as it counts: its place in the table, and two numbers between −1 and 1 by which equal ones are moved apart.
fn points(rows: usize, count: impl Fn(usize) -> u64, keys: impl Fn(usize) -> [u64; 2]) -> Vec<(usize, [f64; 2])> {
    let mut order: Vec<usize> = (0..rows).collect();
    order.sort_by_key(|row| (keys(*row), *row));
    let mut points = Vec::new();
    let (mut before, mut copy) = (None, 0u64);
    for row in order {
        let key = keys(row);
        copy = if before == Some(key) { copy } else { 0 };
        before = Some(key);
        for _ in 0..count(row) {
            let seed = mixed(key[0] ^ mixed(key[1] ^ mixed(copy)));
            points.push((row, [seed, mixed(seed)].map(|bits| (bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0)));
            copy += 1;
        }
    }
    points
}

/// Bits that have nothing to do with each other (splitmix64).
fn mixed(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The noise of a column of points.
fn noise(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    NOISE * (values.map(f64::abs).sum::<f64>() / count).max(1.0)
}

/// Of a number, as it is scaled, and classes, each of `classes` codes. Classes of a single row say nothing and are left out.
pub(crate) fn with_classes(
    values: &[f64],
    codes: &[u32],
    classes: usize,
    count: impl Fn(usize) -> u64,
    k: usize,
    run: &Run,
) -> Result<f64> {
    let points = points(values.len(), count, |row| [values[row].to_bits(), codes[row].into()]);
    let size = noise(points.iter().map(|(row, _)| values[*row]));
    let apart: Vec<f64> = points.iter().map(|(row, noise)| values[*row] + size * noise[0]).collect();
    let mut of_class: Vec<Vec<usize>> = vec![Vec::new(); classes];
    points.iter().enumerate().for_each(|(at, (row, _))| of_class[codes[*row] as usize].push(at));
    of_class.retain(|points| points.len() > 1);
    let whole = Line::new(&apart, of_class.iter().flatten().copied());
    let (total, mut sum) = (whole.order.len() as f64, 0.0);
    for points in of_class {
        let line = Line::new(&apart, points.into_iter());
        let near = k.min(line.order.len() - 1);
        let constant = digamma(near as f64) - digamma(line.order.len() as f64);
        for at in 0..line.order.len() {
            if at % POINTS == 0 {
                run.check()?;
            }
            let distance = line.outwards(at).nth(near - 1).map_or(0.0, |(_, distance)| distance);
            sum += constant - digamma(whole.nearer(line.values[at], distance) as f64);
        }
    }
    Ok(if total > 0.0 { (digamma(total) + sum / total).max(0.0) } else { 0.0 })
}

/// Of two numbers, each as it is scaled.
pub(crate) fn with_number(x: &[f64], y: &[f64], count: impl Fn(usize) -> u64, k: usize, run: &Run) -> Result<f64> {
    let points = points(x.len(), count, |row| [x[row].to_bits(), y[row].to_bits()]);
    let sizes = [noise(points.iter().map(|(row, _)| x[*row])), noise(points.iter().map(|(row, _)| y[*row]))];
    let x: Vec<f64> = points.iter().map(|(row, noise)| x[*row] + sizes[0] * noise[0]).collect();
    let y: Vec<f64> = points.iter().map(|(row, noise)| y[*row] + sizes[1] * noise[1]).collect();
    let (along_x, along_y) = (Line::new(&x, 0..x.len()), Line::new(&y, 0..y.len()));
    let total = x.len();
    let k = k.min(total.saturating_sub(1)).max(1);
    let (mut sum, mut nearest) = (0.0, Vec::with_capacity(k + 1));
    for at in 0..total {
        if at % POINTS == 0 {
            run.check()?;
        }
        let point = along_x.order[at];
        let distance = joint_distance(&along_x, &y, at, k, &mut nearest);
        sum += digamma(along_x.nearer(x[point], distance) as f64) + digamma(along_y.nearer(y[point], distance) as f64);
    }
    Ok((digamma(total as f64) + digamma(k as f64) - sum / total.max(1) as f64).max(0.0))
}

/// The distance to the `k`-th neighbour in the larger of both coordinates: outwards along x until that alone is further than what was found.
fn joint_distance(line: &Line, y: &[f64], at: usize, k: usize, nearest: &mut Vec<f64>) -> f64 {
    let own = y[line.order[at]];
    nearest.clear();
    for (place, distance) in line.outwards(at) {
        if nearest.len() == k && distance >= nearest[k - 1] {
            break;
        }
        let joint = distance.max((y[line.order[place]] - own).abs());
        nearest.insert(nearest.partition_point(|other| *other <= joint), joint);
        nearest.truncate(k);
    }
    nearest.last().copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_number(x: &[f64], y: &[f64], count: impl Fn(usize) -> u64, k: usize) -> f64 {
        super::with_number(x, y, count, k, &Run::default()).unwrap()
    }

    fn with_classes(values: &[f64], codes: &[u32], classes: usize, count: impl Fn(usize) -> u64, k: usize) -> f64 {
        super::with_classes(values, codes, classes, count, k, &Run::default()).unwrap()
    }

    /// Two normal numbers of correlation r share −½ ln(1 − r²).
    #[test]
    fn normal_numbers() {
        let mut random = Run::new(2).random("neighbours", 0);
        for r in [0.0, 0.6, 0.9f64] {
            let x: Vec<f64> = (0..2000).map(|_| random.normal()).collect();
            let y: Vec<f64> = x.iter().map(|x| r * x + (1.0 - r * r).sqrt() * random.normal()).collect();
            let expected = -0.5 * (1.0 - r * r).ln();
            let found = with_number(&x, &y, |_| 1, 3);
            assert!((found - expected).abs() < 0.06, "{r}: {found} instead of {expected}");
        }
    }

    /// Every joint distance is what looking at all rows finds; rows that count twice are two rows.
    #[test]
    fn distances_are_those_of_all_rows() {
        let mut random = Run::new(5).random("neighbours", 1);
        let x: Vec<f64> = (0..200).map(|_| random.normal()).collect();
        let y: Vec<f64> = (0..200).map(|_| random.normal()).collect();
        let line = Line::new(&x, 0..200);
        for at in 0..200 {
            let row = line.order[at];
            let mut all: Vec<f64> = (0..200)
                .filter(|other| *other != row)
                .map(|other| (x[other] - x[row]).abs().max((y[other] - y[row]).abs()))
                .collect();
            all.sort_by(f64::total_cmp);
            assert_eq!(joint_distance(&line, &y, at, 3, &mut Vec::new()), all[2]);
        }
        let twice: Vec<f64> = x.iter().flat_map(|x| [*x, *x]).collect();
        let twice_y: Vec<f64> = y.iter().flat_map(|y| [*y, *y]).collect();
        let (weighted, repeated) = (with_number(&x, &y, |_| 2, 3), with_number(&twice, &twice_y, |_| 1, 3));
        assert!((weighted - repeated).abs() < 1e-12, "{weighted} instead of {repeated}");
    }

    /// Whole numbers, which are equal to many others, share no more with noise than other numbers do.
    #[test]
    fn equal_values_say_nothing_by_themselves() {
        let mut random = Run::new(6).random("neighbours", 2);
        let x: Vec<f64> = (0..1000).map(|_| random.below(2) as f64).collect();
        let y: Vec<f64> = (0..1000).map(|_| random.below(40) as f64 / 10.0).collect();
        let codes: Vec<u32> = (0..1000).map(|_| random.below(3) as u32).collect();
        assert!(with_number(&x, &y, |_| 1, 3) < 0.06, "{}", with_number(&x, &y, |_| 1, 3));
        assert!(with_classes(&y, &codes, 3, |_| 1, 3) < 0.06, "{}", with_classes(&y, &codes, 3, |_| 1, 3));
        // What is the same has as much information as there is.
        assert!(with_number(&y, &y, |_| 1, 3) > 2.0);
    }
}
