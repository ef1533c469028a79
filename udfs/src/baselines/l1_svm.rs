use super::logistic_lasso::rank;
use crate::linear::classifier::Loss;
use crate::{Check, Problem, Ranking, Reads, Result, Run, Selector, selector};

selector! {
    /// Linear support vector machine under a LASSO penalty (L1-SVM).
    ///
    /// Lowers the penalty of `mean max(0, 1 − y f(x))² + λ Σ |w_j|` from where nothing is chosen to where `k` features are; `y` is −1 or 1. More than two classes are told apart each from all others, and a feature is in as soon as one of
    /// them uses it. As in LIBLINEAR the bias is a feature that is 1 throughout, and is penalised as one. A text or a group is penalised by the length of all its coefficients.
    ///
    /// `penalty => 0.05` asks for the model at that penalty instead of for a number of features: `score` is then the length of a feature's coefficients. LIBLINEAR's and scikit-learn's `C` is `1 / (rows × penalty)`.
    ///
    /// Cost: `rows × features × classes` multiplications for each penalty, and some dozen times `rows × chosen × classes`.
    ///
    /// Source: Fan, Chang, Hsieh, Wang and Lin, 2008. LIBLINEAR: a library for large linear classification.
    #[selector(
        name = "l1_svm",
        aliases = [],
        labels = Classes,
        score = "penalty at which the feature enters",
    )]
    pub struct L1Svm {
        /// The penalty, instead of a number of features.
        penalty: Option<f64> = None, Check::Between(1e-6, 100.0);
    }
}

impl Selector for L1Svm {
    fn reads(&self) -> Reads {
        Reads::Rows
    }

    fn has_size(&self) -> bool {
        self.penalty.is_some()
    }

    fn select(&self, problem: &Problem, run: &Run) -> Result<Ranking> {
        rank(Loss::SquaredHinge, self.penalty, problem, run)
    }
}
