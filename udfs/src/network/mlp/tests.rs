use super::*;
use crate::network::threads::Team;

/// Five inputs, forty rows, and a network on them.
pub(in crate::network) fn example(loss: Loss, hidden: &[usize]) -> (Mlp, Samples, Vec<u32>) {
    let mut random = Run::new(8).random("example", 0);
    let inputs = Inputs::plain((0..5).collect(), loss);
    let stride = crate::network::samples::stride_for(5);
    let mut values = Aligned::zeros(40 * stride);
    values.chunks_mut(stride).for_each(|row| row[..5].iter_mut().for_each(|x| *x = random.normal() as f32));
    let targets = (0..40)
        .map(|row| match loss {
            Loss::Squared => random.normal() as f32,
            _ => (row % loss.outputs().max(2)) as f32,
        })
        .collect();
    let samples = Samples { columns: 5, stride, values, targets, ..Samples::default() };
    (Mlp::new(&inputs, hidden, &Run::new(3)), samples, (0..40).collect())
}

fn loss(mlp: &Mlp, samples: &Samples, rows: &[u32], mask: &[f32]) -> f64 {
    mlp.differentiate(samples, rows, Gate { mask: Some(mask), decay: None }, &mut Batch::default()).unwrap()
}

/// For every loss and depth: all weights, biases and the mask, against the loss at a little more and a little less.
#[test]
fn gradients_equal_finite_differences() {
    const STEP: f32 = 2e-3;
    let mask = [1.0, 0.3, 0.7, 0.05, 0.5];
    for kind in [Loss::Squared, Loss::Logistic, Loss::Softmax(3), Loss::Softmax(9)] {
        for hidden in [&[][..], &[7][..], &[11, 6][..]] {
            let (mut mlp, samples, rows) = example(kind, hidden);
            let mut batch = Batch::default();
            let gate = Gate { mask: Some(&mask), decay: None };
            mlp.differentiate(&samples, &rows, gate, &mut batch).unwrap();
            mlp.update(&samples, gate, None, &mut batch);
            let mut wrong = 0;
            let mut checked = 0;
            let mut check = |analytic: f32, moved: &dyn Fn(f32) -> f64| {
                let difference = (moved(STEP) - moved(-STEP)) / f64::from(2.0 * STEP);
                checked += 1;
                // Where a ReLU switches on between the two points the difference is no derivative.
                wrong += usize::from((difference - f64::from(analytic)).abs() > 2e-3 + 0.02 * difference.abs());
            };
            for at in 0..mlp.layers.len() {
                let width = mlp.layers[at].width;
                for weight in (0..mlp.layers[at].weights.values.len()).filter(|w| w % width < mlp.layers[at].outputs) {
                    let moved = |by: f32| {
                        let mut other = mlp.clone();
                        other.layers[at].weights.values[weight] += by;
                        other.layers[at].transpose();
                        loss(&other, &samples, &rows, &mask)
                    };
                    check(mlp.layers[at].weights.gradient[weight], &moved);
                }
                for bias in 0..mlp.layers[at].outputs {
                    let moved = |by: f32| {
                        let mut other = mlp.clone();
                        other.layers[at].bias.values[bias] += by;
                        loss(&other, &samples, &rows, &mask)
                    };
                    check(mlp.layers[at].bias.gradient[bias], &moved);
                }
            }
            for input in 0..5 {
                let moved = |by: f32| {
                    let mut other = mask;
                    other[input] += by;
                    loss(&mlp, &samples, &rows, &other)
                };
                check(batch.slopes()[input], &moved);
            }
            assert!(wrong * 50 <= checked, "{kind:?} {hidden:?}: {wrong} of {checked}");
        }
    }
}

/// The mean loss decreases, and what the network says is what the loss was computed from.
#[test]
fn training_lowers_the_loss() {
    for kind in [Loss::Squared, Loss::Logistic, Loss::Softmax(3)] {
        let (mut mlp, samples, rows) = example(kind, &[16]);
        let mut batch = Batch::default();
        let first = mlp.train(&samples, &rows, Gate::default(), 0.01, &mut batch).unwrap();
        for _ in 0..300 {
            mlp.train(&samples, &rows, Gate::default(), 0.01, &mut batch).unwrap();
        }
        let last = loss(&mlp, &samples, &rows, &[1.0; 5]);
        assert!(last < 0.3 * first, "{kind:?}: {first} {last}");
        let outputs = mlp.outputs(&samples, &samples.all(), &Run::new(0)).unwrap();
        let judged = crate::judging::judge::judge(&Inputs::plain((0..5).collect(), kind), &outputs, (&samples, &samples.all()));
        assert!((judged.loss - last).abs() < 1e-4, "{kind:?}: {} {last}", judged.loss);
    }
}

#[test]
fn dropping_an_input_is_the_same_as_masking_it() {
    let (mut mlp, mut samples, rows) = example(Loss::Softmax(3), &[7]);
    let masked = loss(&mlp, &samples, &rows, &[1.0, 0.0, 1.0, 1.0, 0.0]);
    mlp.keep_inputs(&[0, 2, 3]);
    samples.keep_columns(&[0, 2, 3], &Run::new(0)).unwrap();
    assert!((loss(&mlp, &samples, &rows, &[1.0; 3]) - masked).abs() < 1e-6);
}

#[test]
fn a_batch_of_any_size_gives_the_same_on_any_number_of_threads() {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let inputs = Inputs::plain((0..300).collect(), Loss::Softmax(3));
            let mut random = Run::new(1).random("x", 0);
            let stride = crate::network::samples::stride_for(300);
            let values = (0..77 * stride).map(|_| random.normal() as f32).collect();
            let targets = (0..77).map(|row| (row % 3) as f32).collect();
            let samples = Samples { columns: 300, stride, values, targets, ..Samples::default() };
            let mut mlp = Mlp::new(&inputs, &[67], &Run::new(3));
            let rows: Vec<u32> = (0..77).collect();
            let mut batch = Batch::default();
            for _ in 0..5 {
                mlp.train(&samples, &rows, Gate::default(), 0.01, &mut batch).unwrap();
            }
            assert!(batch.is_parallel);
            mlp.layers[0].weights.values.to_vec()
        })
    };
    assert_eq!(run(1), run(3));
}

/// Rows kept whole and rows of which only the unusual values are kept, alone and with a team: the same training.
#[test]
fn sparse_rows_train_as_whole_ones_do() {
    const COLUMNS: usize = 500;
    let mut random = Run::new(1).random("x", 0);
    let mut column =
        |base: f64| -> Vec<f64> { (0..77).map(|_| if random.uniform() < 0.2 { random.normal() } else { base }).collect() };
    let columns: Vec<Vec<f64>> = (0..COLUMNS).map(|at| column([0.0, -0.3, 0.7][at % 3])).collect();
    let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    let rows: Vec<usize> = (0..77).collect();
    let stride = crate::network::samples::stride_for(COLUMNS);
    let mut values = Aligned::zeros(77 * stride);
    for (row, values) in values.chunks_mut(stride).enumerate() {
        values.iter_mut().zip(&columns).for_each(|(value, column)| *value = column[row] as f32);
    }
    let targets: Vec<f32> = (0..77).map(|row| (row % 3) as f32).collect();
    let sparse = sparse::Sparse::of(&slices, &[1.0; COLUMNS], &rows);
    assert!(sparse.is_some());
    let whole = Samples { columns: COLUMNS, stride, values, targets: targets.clone(), ..Samples::default() };
    let samples = [whole, Samples { columns: COLUMNS, sparse, targets, ..Samples::default() }];
    let train = |samples: &Samples, batch: &mut Batch| {
        let mut mlp = Mlp::new(&Inputs::plain((0..COLUMNS).collect(), Loss::Softmax(3)), &[67], &Run::new(3));
        let rows: Vec<u32> = (0..77).rev().collect();
        let losses: Vec<f64> = (0..20).map(|_| mlp.train(samples, &rows, Gate::default(), 0.01, batch).unwrap()).collect();
        assert!(batch.is_parallel);
        (losses, mlp.outputs(samples, &samples.all(), &Run::new(0)).unwrap())
    };
    let [whole, sparse] = samples.each_ref().map(|samples| train(samples, &mut Batch::default()));
    for (a, b) in whole.0.iter().zip(&sparse.0) {
        // Rounding in the sums differs, and a step of Adam does not make it smaller.
        assert!((a - b).abs() < 1e-4, "{:?} {:?}", whole.0, sparse.0);
    }
    for (samples, alone) in samples.iter().zip([whole, sparse]) {
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let together =
                pool.install(|| Team::gather(|team| train(samples, &mut Batch { team: Some(team.clone()), ..Batch::default() })));
            assert_eq!(together, alone);
        }
    }
}
