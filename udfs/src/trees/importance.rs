//! What is lost when a feature's values are mixed up.

use crate::Random;
use crate::trees::columns::Columns;
use crate::trees::forest::Answer;
use crate::trees::tree::Tree;

/// For each column, how much more often (for numbers: by how much more squared error) a tree is wrong about rows that it has not seen when the rows'
/// values of that column are dealt out among them anew. Only the columns that a row is asked for can change what is said of it.
pub(crate) fn of_permutation(
    tree: &Tree,
    values: &[f32],
    columns: &Columns<'_>,
    rows: &[u32],
    weight: impl Fn(u32) -> f64,
    answer: &Answer,
    random: &mut Random,
) -> Vec<f64> {
    let mut lost = vec![0.0; columns.len()];
    if rows.len() < 2 {
        return lost;
    }
    let outputs = answer.outputs();
    let error = |row: u32, leaf: usize| match answer {
        Answer::Numbers(numbers) => (numbers[row as usize] - f64::from(values[leaf])).powi(2),
        Answer::Classes { of_row, .. } => {
            let values = &values[leaf * outputs..(leaf + 1) * outputs];
            let class = match values {
                [second] => usize::from(*second > 0.5),
                shares => (1..shares.len()).fold(0, |best, class| if shares[class] > shares[best] { class } else { best }),
            };
            f64::from(class != of_row[row as usize] as usize)
        }
    };
    // In a random order each row gets the value of the one that is so many places further on, as many for all: a column's values are dealt
    // out without keeping a list for each column.
    let mut order = rows.to_vec();
    random.shuffle(&mut order);
    let shifts: Vec<usize> = (0..columns.len()).map(|_| 1 + random.below(order.len() - 1)).collect();
    let mut asked: Vec<u32> = Vec::new();
    let mut total = 0.0;
    for (at, row) in order.iter().enumerate() {
        total += weight(*row);
        asked.clear();
        let leaf = tree.walk(|column| columns.codes[column][*row as usize], |column| asked.push(column));
        asked.sort_unstable();
        asked.dedup();
        let before = error(*row, leaf);
        for mixed in &asked {
            let mixed = *mixed as usize;
            let other = order[(at + shifts[mixed]) % order.len()];
            let code = |column: usize| columns.codes[column][if column == mixed { other } else { *row } as usize];
            lost[mixed] += weight(*row) * (error(*row, tree.leaf(code)) - before);
        }
    }
    lost.iter_mut().for_each(|lost| *lost /= total);
    lost
}
