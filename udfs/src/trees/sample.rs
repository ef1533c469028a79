//! Rows drawn with replacement.

use crate::Random;
use crate::reading::bins::Counts;

/// Draws as many rows as the weights add up to, each as likely as its weight, so that a weight of 2 is the row twice; but no
/// fewer than there are and no more than ten times as many, whatever the unit of the weights.
pub(crate) struct Sampler {
    /// Where the places of a row end; none when every row has one place.
    ends: Vec<u64>,
    places: u64,
    draws: u64,
    /// Whether a place is a row, or one of several that are the same.
    is_whole: bool,
    rows: usize,
}

/// What was drawn.
pub(crate) struct Sample {
    /// How often each row was.
    pub drawn: Vec<u32>,
    /// The rows that were not; one of weight 2 stands here twice if neither of it was.
    pub left_out: Vec<u32>,
}

impl Sampler {
    /// Draws from some rows.
    pub fn new(rows: &[u32], counts: &Counts) -> Self {
        let mut places = 0;
        let mut ends: Vec<u64> = Vec::with_capacity(rows.len());
        for row in rows {
            places += u64::from(counts.get(*row as usize));
            ends.push(places);
        }
        let (least, most) = (rows.len() as f64, 10.0 * rows.len() as f64);
        let draws = (places as f64 / counts.unit).round().clamp(least, most) as u64;
        if places == rows.len() as u64 {
            ends.clear();
        }
        Self { ends, places, draws, is_whole: counts.is_whole() && places <= draws, rows: rows.len() }
    }

    /// Bytes that a sample takes.
    pub fn bytes(&self) -> usize {
        2 * self.rows * size_of::<u32>() + if self.is_whole { self.places as usize * 5 / 4 } else { 0 }
    }

    pub fn sample(&self, random: &mut Random) -> Sample {
        let mut drawn = vec![0; self.rows];
        let mut is_drawn = vec![false; if self.is_whole { self.places as usize } else { 0 }];
        for _ in 0..self.draws {
            let place = (random.uniform() * self.places as f64) as u64;
            let row = if self.ends.is_empty() { place as usize } else { self.ends.partition_point(|end| *end <= place) };
            drawn[row] += 1;
            if let Some(flag) = is_drawn.get_mut(place as usize) {
                *flag = true;
            }
        }
        let mut left_out = Vec::new();
        let mut start = 0;
        for row in 0..self.rows {
            let end = self.ends.get(row).copied().unwrap_or(row as u64 + 1);
            let copies = match self.is_whole {
                true => (start..end).filter(|place| !is_drawn[*place as usize]).count(),
                false => usize::from(drawn[row] == 0),
            };
            left_out.extend(std::iter::repeat_n(row as u32, copies));
            start = end;
        }
        Sample { drawn, left_out }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;

    #[test]
    fn a_weight_is_a_repetition() {
        let counts = Counts::new(&[2.0, 1.0, 3.0, 1.0, 2.0]);
        let copies = [0, 0, 1, 2, 2, 2, 3, 4, 4];
        let (weighted, plain) = (Sampler::new(&[0, 1, 2, 3, 4], &counts), Sampler::new(&[0; 9], &Counts::new(&[])));
        for task in 0..20 {
            let random = || Run::new(1).random("sample", task);
            let (weighted, plain) = (weighted.sample(&mut random()), plain.sample(&mut random()));
            let mut drawn = [0; 5];
            plain.drawn.iter().zip(copies).for_each(|(times, row)| drawn[row] += times);
            assert_eq!(weighted.drawn, drawn);
            let left_out: Vec<u32> = plain.left_out.iter().map(|copy| copies[*copy as usize] as u32).collect();
            assert_eq!(weighted.left_out, left_out);
        }
    }

    #[test]
    fn small_and_large_weights_draw_about_as_many_rows_as_there_are() {
        let draws = |weight: f64| {
            let counts = Counts::new(&[weight, weight, 2.0 * weight]);
            Sampler::new(&[0, 1, 2], &counts).sample(&mut Run::new(0).random("sample", 0)).drawn.iter().sum::<u32>()
        };
        assert_eq!((draws(0.01), draws(1.0), draws(1e6)), (3, 4, 30));
    }
}
