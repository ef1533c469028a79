use crate::Declared;
use crate::Spec;
use crate::baselines::{
    batch_attention::BatchAttention, boosting::Boosting, correlation::Correlation, extra_trees::ExtraTrees,
    group_lasso::GroupLasso, lasso::Lasso, random_forest::RandomForest,
};
use crate::reports::chosen::{Chosen, ChosenSql};
use crate::reports::datum_wise_classify::{DatumWiseClassify, DatumWiseSteps};
use crate::reports::{
    correlation_matrix::CorrelationMatrix, datum_wise_curve::DatumWiseCurve, datum_wise_policy::DatumWisePolicy,
    describe_features::DescribeFeatures, evaluate::Evaluate, fit::Fit, knockoffs::Knockoffs, marginal_gains::MarginalGains,
    model_sql::ModelSql, predict::Predict, selection_path::SelectionPath, stability_selection::StabilitySelection,
};
use crate::selectors::{
    datum_wise::DatumWise, neural_greedy_pursuit::NeuralGreedyPursuit, omp::Omp, select_features::SelectFeatures,
    sequential_attention::SequentialAttention, sequential_lasso::SequentialLasso,
};

/// Every selector that ships with Pursuit, in the order in which `selectors()` lists them.
pub fn selectors() -> Vec<Spec> {
    vec![
        Omp::spec(),
        SequentialLasso::spec(),
        SequentialAttention::spec(),
        NeuralGreedyPursuit::spec(),
        DatumWise::spec(),
        Lasso::spec(),
        Correlation::spec(),
        GroupLasso::spec(),
        BatchAttention::spec(),
        RandomForest::spec(),
        ExtraTrees::spec(),
        Boosting::spec(),
        SelectFeatures::spec(),
    ]
}

/// The functions that answer otherwise than with a ranking.
pub fn reports() -> Vec<Spec> {
    vec![
        Evaluate::spec(),
        MarginalGains::spec(),
        SelectionPath::spec(),
        StabilitySelection::spec(),
        Knockoffs::spec(),
        DescribeFeatures::spec(),
        CorrelationMatrix::spec(),
        Fit::spec(),
        Predict::spec(),
        ModelSql::spec(),
        Chosen::spec(),
        ChosenSql::spec(),
        DatumWiseClassify::spec(),
        DatumWiseSteps::spec(),
        DatumWisePolicy::spec(),
        DatumWiseCurve::spec(),
    ]
}
