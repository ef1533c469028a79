//! Members of a set exchanged for others, as long as a judge likes the set better.

use rayon::prelude::*;

use crate::Result;

/// One in the place of another.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Exchange {
    /// Its place in the set.
    pub at: usize,
    pub out: usize,
    pub into: usize,
    /// By how much the judge likes it better.
    pub gain: f64,
}

/// What is tried.
pub(crate) struct Limits<'a> {
    /// Places of the set that are not exchanged.
    pub fixed: &'a [usize],
    /// Members that others are tried in the place of, the least missed first, until one helps; and how many others.
    pub weak: usize,
    pub tried: usize,
    /// What an exchange must gain.
    pub worth: f64,
    pub exchanges: usize,
}

/// Finds the members that the judge misses least, and puts one of those in their place that `missing` names for what is left, if that is worth it; again and again. What went does
/// not come back. What was exchanged is in `done`, even if the judge fails in the middle.
pub(crate) fn exchange(
    set: &mut [usize],
    limits: &Limits<'_>,
    judge: impl Fn(&[usize]) -> Result<f64> + Sync,
    mut missing: impl FnMut(&[usize]) -> Result<Vec<usize>>,
    done: &mut Vec<Exchange>,
) -> Result<()> {
    let free: Vec<usize> = (0..set.len()).filter(|at| !limits.fixed.contains(at)).collect();
    let without = |set: &[usize], but: usize| -> Vec<usize> {
        set.iter().enumerate().filter(|(at, _)| *at != but).map(|(_, member)| *member).collect()
    };
    let mut skill = judge(set)?;
    for _ in 0..limits.exchanges {
        let skills = free.par_iter().map(|at| judge(&without(set, *at))).collect::<Result<Vec<f64>>>()?;
        let mut weak: Vec<usize> = (0..free.len()).collect();
        weak.sort_by(|a, b| skills[*b].total_cmp(&skills[*a]).then(a.cmp(b)));
        let mut found = None;
        for at in weak.into_iter().take(limits.weak).map(|at| free[at]) {
            let kept = without(set, at);
            let is_new = |other: &usize| *other != set[at] && !done.iter().any(|before| before.out == *other);
            let tried: Vec<usize> = missing(&kept)?.into_iter().filter(is_new).take(limits.tried).collect();
            let skills = tried.par_iter().map(|other| judge(&[&kept[..], &[*other]].concat())).collect::<Result<Vec<f64>>>()?;
            found =
                largest(&skills).filter(|best| skills[*best] > skill + limits.worth).map(|best| (at, tried[best], skills[best]));
            if found.is_some() {
                break;
            }
        }
        let Some((at, into, better)) = found else { break };
        done.push(Exchange { at, out: set[at], into, gain: better - skill });
        (set[at], skill) = (into, better);
    }
    Ok(())
}

/// The place of the largest, the first of equals.
fn largest(values: &[f64]) -> Option<usize> {
    (0..values.len()).reduce(|best, at| if values[at] > values[best] { at } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    /// Numbers are worth what they are, and the larger ones are missing.
    fn exchanged(set: &mut [usize], fixed: &[usize], worth: f64) -> Vec<Exchange> {
        let mut done = Vec::new();
        let limits = Limits { fixed, weak: 1, tried: 2, worth, exchanges: 10 };
        let missing = |kept: &[usize]| Ok((0..10).rev().filter(|number| !kept.contains(number)).collect());
        exchange(set, &limits, |set| Ok(set.iter().sum::<usize>() as f64), missing, &mut done).unwrap();
        done
    }

    #[test]
    fn the_least_goes_as_long_as_it_is_worth_it() {
        let mut set = [1, 9, 2];
        let done = exchanged(&mut set, &[], 0.5);
        assert_eq!(set, [8, 9, 7]);
        assert_eq!(done[0], Exchange { at: 0, out: 1, into: 8, gain: 7.0 });
        let mut set = [1, 9, 6];
        exchanged(&mut set, &[], 1.5);
        assert_eq!(set, [8, 9, 6]);
    }

    /// Nothing is better in the place of the least missed, but in that of the next.
    #[test]
    fn the_next_is_tried_where_the_least_missed_is_not_helped() {
        // 1 is worth little and cannot be replaced; 3 can, by 4.
        let judge = |set: &[usize]| {
            let value = |member: &usize| if *member == 4 && !set.contains(&1) { 0.0 } else { *member as f64 };
            Ok(set.iter().map(value).sum::<f64>())
        };
        for (weak, expected) in [(1, [1, 3]), (2, [1, 4])] {
            let (mut set, mut done) = ([1, 3], Vec::new());
            let limits = Limits { fixed: &[], weak, tried: 1, worth: 0.1, exchanges: 3 };
            exchange(&mut set, &limits, judge, |_| Ok(vec![4]), &mut done).unwrap();
            assert_eq!(set, expected);
        }
    }

    #[test]
    fn what_is_fixed_stays() {
        let mut set = [1, 2];
        exchanged(&mut set, &[0], 0.5);
        assert_eq!(set, [1, 9]);
        assert!(exchanged(&mut [3], &[0], 0.5).is_empty());
    }

    /// A judge that fails ends it; what was exchanged before stays.
    #[test]
    fn what_was_done_is_kept() {
        let (mut set, mut done) = ([1, 2], Vec::new());
        let limits = Limits { fixed: &[], weak: 1, tried: 1, worth: 0.0, exchanges: 5 };
        let judge =
            |set: &[usize]| if set.contains(&8) { Err(Error::data("late")) } else { Ok(set.iter().sum::<usize>() as f64) };
        let missing = |kept: &[usize]| Ok(vec![if kept.contains(&9) { 8 } else { 9 }]);
        assert!(exchange(&mut set, &limits, judge, missing, &mut done).is_err());
        assert_eq!((set, done.len()), ([9, 2], 1));
    }
}
