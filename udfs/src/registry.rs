use crate::Declared;
use crate::Spec;
use crate::baselines::{
    adaptive_lasso::AdaptiveLasso, bart::Bart, batch_attention::BatchAttention, best_subset::BestSubset, boosting::Boosting,
    boruta::Boruta, cart::Cart, chi2::Chi2, cmim::Cmim, correlation::Correlation, deep_lasso::DeepLasso, deeplift::Deeplift,
    drop_one_out::DropOneOut, elastic_net::ElasticNet, extra_trees::ExtraTrees, f_test::FTest, fisher_score::FisherScore,
    forward_selection::ForwardSelection, gam::Gam, group_lasso::GroupLasso, hsic_lasso::HsicLasso, jmi::Jmi, l1_svm::L1Svm,
    lasso::Lasso, lassonet::LassoNet, logistic_lasso::LogisticLasso, mrmr::Mrmr, mutual_information::MutualInformation,
    permutation::Permutation, pfa::Pfa, random_forest::RandomForest, relief::Relief, rfe::Rfe,
};
use crate::reports::chosen::{Chosen, ChosenSql};
use crate::reports::datum_wise_classify::{DatumWiseClassify, DatumWiseSteps};
use crate::reports::{
    compare_selectors::CompareSelectors, correlation_matrix::CorrelationMatrix, datum_wise_curve::DatumWiseCurve,
    datum_wise_policy::DatumWisePolicy, describe_features::DescribeFeatures, evaluate::Evaluate, fit::Fit, knockoffs::Knockoffs,
    marginal_gains::MarginalGains, model_sql::ModelSql, predict::Predict, selection_path::SelectionPath,
    stability_selection::StabilitySelection,
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
        ElasticNet::spec(),
        AdaptiveLasso::spec(),
        LogisticLasso::spec(),
        L1Svm::spec(),
        BestSubset::spec(),
        Correlation::spec(),
        FTest::spec(),
        Chi2::spec(),
        FisherScore::spec(),
        MutualInformation::spec(),
        Mrmr::spec(),
        Cmim::spec(),
        Jmi::spec(),
        Relief::spec(),
        HsicLasso::spec(),
        Pfa::spec(),
        GroupLasso::spec(),
        DeepLasso::spec(),
        LassoNet::spec(),
        BatchAttention::spec(),
        RandomForest::spec(),
        ExtraTrees::spec(),
        Boosting::spec(),
        Bart::spec(),
        Rfe::spec(),
        ForwardSelection::spec(),
        DropOneOut::spec(),
        Permutation::spec(),
        Boruta::spec(),
        Cart::spec(),
        Deeplift::spec(),
        Gam::spec(),
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
        CompareSelectors::spec(),
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
