mod attention;
mod backward;
mod forward;
mod linear;
mod one_pass;

use crate::network::training::Training;
use crate::neural::one_pass::{Course, OnePass, Passing, Stream};
use crate::neural::workbench;
use crate::{Check, Error, Pass, Plan, Problem, Ranking, Reads, Result, Run, Selector, Streaming, choice, selector};
use attention::Mask;

choice! {
    /// What predicts the label.
    pub enum Model {
        Mlp = "mlp",
        Linear = "linear",
    }
}

choice! {
    /// Where a selection starts.
    pub enum Direction {
        /// With nothing: the feature with the most attention comes in.
        Forward = "forward",
        /// With everything: the features that the network uses least go out.
        Backward = "backward",
    }
}

selector! {
    /// Sequential attention: greedy, while one network trains.
    ///
    /// Gives every feature that is not yet chosen an attention weight, trains weights and model together, and chooses the
    /// feature with the largest one; then begins the next round with the chosen features always on.
    ///
    /// The model is a network with one hidden layer of ReLUs, trained by Adam on squared, logistic or softmax loss. Its inputs pass
    /// through a mask `m`: 1 for the chosen features, `softmax(w)` over the others. One network is trained throughout:
    ///
    /// 1. warm up with every feature on (`warmup`, a tenth of all steps)
    /// 2. in each of the equally long rounds train the network and the attention weights `w`, which start at 0
    /// 3. at its end choose the `per_round` features with the largest `w`, and go on
    ///
    /// Where we depart from the authors' published program: a round chooses at its end and not at its beginning, when `w` is still
    /// random; `w` has a learning rate of its own, without which it hardly moves; and its moments are reset with it.
    /// `direction => 'backward'` starts with every feature on and turns off, round by round, the tenth that the network
    /// relies on least: more accurate on some tables, and faster, because the network shrinks.
    ///
    /// `passes => 'one'` reads the table once, row by row, for tables that do not fit into memory: each round sees its own slice of the
    /// rows. They wait in a buffer (`shuffle_buffer`) and leave it in random order; nothing else is kept. The first rows that fill the buffer
    /// settle scales, text levels and classes. `train_score` is that of these rows.
    ///
    /// `model => 'linear'` is the regularised linear form: in each round minimise
    /// `‖X (s(w) ∘ θ) − y‖² + λ/2 (‖w‖² + ‖θ‖²)` over attention weights `w` and coefficients `θ`, where `s(w)` is 1 for the chosen features,
    /// which carry no penalty, and `w` for the others.
    ///
    /// 1. set `λ` just below the value at which all weights vanish (`1 − closeness` of it)
    /// 2. from `w = θ = 1`, alternate: ridge regression for `θ` given `w`, then for `w` given `θ`, until neither moves
    /// 3. choose the feature with the largest `|w|`
    ///
    /// It provably chooses what orthogonal matching pursuit and sequential LASSO choose, except among ties.
    ///
    /// A choice of up to 16 features, out of up to 1,000, ends with `swaps`. Each of the two chosen features that are missed least is tried against four others: those that the network misses most, and those from which boosted trees
    /// on all features gain most. Boosted trees and a network, trained on the set alone, judge each swap on held-out rows.
    ///
    /// Cost: `4 × features × hidden` operations for each row of each pass, and for each swap as many small trainings as there are chosen features and up to eight more; linear: one pass over the table, then `features × k`
    /// operations a choice.
    ///
    /// Source: Yasuda, Bateni, Chen, Fahrbach, Fu and Mirrokni, 2023. Sequential attention for feature selection.
    #[selector(
        name = "sequential_attention",
        aliases = ["sa"],
        labels = Any,
        score = "attention when it was chosen, as a share of all; linear: squared, as the correlation with the residual that it stands for",
    )]
    pub struct SequentialAttention {
        /// What predicts the label from the attended features.
        model: Model = Model::Mlp;
        /// How attention weights become factors of the features.
        mask: Mask = Mask::Softmax;
        /// Features chosen in a round.
        per_round: usize = 1, Check::AtLeast(1.0);
        /// Whether features come in, the most attended first, or go out, the least used first.
        direction: Direction = Direction::Forward;
        /// Share of the training before the first round, with every feature on.
        warmup: f64 = 0.1, Check::Between(0.0, 0.9);
        /// Size of a step of the attention weights. NULL: 0.03; for masks that are not normalised a share of where their weights start.
        attention_rate: Option<f64> = None, Check::Between(1e-9, 10.0);
        /// Whether, at the end, up to 16 chosen features are tried against others on rows held out: features that say the same share the attention.
        swaps: bool = true;
        /// Linear model: how far below the vanishing point the penalty is set, as a share of it.
        closeness: f64 = 0.001, Check::Between(0.0001, 0.01);
        ..passing: Passing;
        ..training: Training;
    }
}

impl SequentialAttention {
    fn attention_rate(&self, candidates: usize) -> f64 {
        self.attention_rate.unwrap_or_else(|| self.mask.rate(candidates))
    }
}

impl Selector for SequentialAttention {
    fn reads(&self) -> Reads {
        match self.model {
            Model::Mlp => self.passing.reads(),
            Model::Linear => Reads::Moments,
        }
    }

    fn streaming(&self) -> Option<&dyn Streaming> {
        matches!(self.reads(), Reads::Pass(_)).then_some(self)
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        match self.model {
            Model::Linear => linear::select(self.closeness, problem, run),
            Model::Mlp => workbench::select(problem, &self.training, run, |bench, most| match self.direction {
                Direction::Forward => forward::order(self, bench, most),
                Direction::Backward => backward::order(bench, most),
            }),
        }
    }

    fn unused(&self, option: &str) -> Option<&'static str> {
        let is_linear = self.model == Model::Linear;
        match option {
            "model" => None,
            "closeness" => (!is_linear).then_some("model => 'linear'"),
            _ if is_linear => Some("model => 'mlp'"),
            "mask" | "per_round" | "warmup" | "attention_rate" | "swaps" if self.direction == Direction::Backward => {
                Some("direction => 'forward'")
            }
            "swaps" if self.passing.is_one() => Some("passes => 'many'"),
            _ => self.passing.unused(option),
        }
    }
}

impl Streaming for SequentialAttention {
    fn begin(&self, problem: &Problem, plan: &Plan, rows: u64, run: &Run) -> Result<Box<dyn Pass>> {
        if self.direction == Direction::Backward {
            return Err(Error::call("`direction` must be 'forward' with passes => 'one', got 'backward'"));
        }
        let stream = Stream { problem, plan, total: rows };
        let course = Course { warmup: self.warmup, per_round: Some(self.per_round) };
        OnePass::begin(&stream, &self.training, &course, |network, _| one_pass::Attending::new(self, network), run)
    }
}
