//! Functions in a crate of their own, registered beside ours. Each is one short file: a selector on moments (`spread`), one on binned columns
//! (`correlation_ratio`), a report (`missing`), and a model (`nearest_mean`).
//!
//! `cargo run -p pursuit-plugin-example` prints what they answer.

mod correlation_ratio;
mod missing;
mod nearest_mean;
mod spread;

use datafusion::prelude::SessionContext;
use pursuit::Engine;

/// A session with our functions beside those that ship with Pursuit.
fn session() -> datafusion::error::Result<SessionContext> {
    let ctx = SessionContext::new();
    let engine = Engine::default().with::<spread::Spread>().with::<missing::Missing>();
    let engine = engine.with::<correlation_ratio::CorrelationRatio>();
    let engine = engine.with::<nearest_mean::NearestMeanFit>().with::<nearest_mean::NearestMean>();
    engine.with_samples().register(&ctx)?;
    Ok(ctx)
}

#[tokio::main]
async fn main() -> datafusion::error::Result<()> {
    let ctx = session()?;
    for sql in [
        "SELECT rank, feature, round(score, 2) AS score FROM spread('sample.wine', 'label', 3)",
        "SELECT option, description FROM selector_options('spread') WHERE scope = 'own'",
        "SELECT rank, feature, round(score, 2) AS score FROM correlation_ratio(sample.diabetes, label => label, k => 3)",
        "SELECT * FROM missing(sample.iris, label => label)",
        "CREATE TABLE means AS SELECT * FROM nearest_mean_fit(sample.iris, label => label)",
        "SELECT prediction, correct, count(*) AS rows FROM nearest_mean(sample.iris, label => label, model => means)
         GROUP BY prediction, correct ORDER BY prediction, correct",
    ] {
        ctx.sql(sql).await?.show().await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn rows(ctx: &SessionContext, sql: &str) -> usize {
        let batches = ctx.sql(sql).await.unwrap().collect().await.unwrap();
        batches.iter().map(|batch| batch.num_rows()).sum()
    }

    /// Kept or fitted on the spot, the model decides alike; a table that is none is refused.
    #[tokio::test]
    async fn a_model_of_ones_own_is_a_table() {
        let ctx = session().unwrap();
        rows(&ctx, "CREATE TABLE flowers AS SELECT row_number() OVER () AS id, * FROM sample.iris").await;
        rows(&ctx, "CREATE TABLE means AS SELECT * FROM nearest_mean_fit(flowers, label => label, exclude => id)").await;
        assert_eq!(rows(&ctx, "SELECT * FROM means").await, 12);
        let kept = "nearest_mean(flowers, label => label, model => means, key => id)";
        let fitted = "nearest_mean(flowers, label => label, key => id)";
        let same = "a.id = b.id AND a.prediction = b.prediction AND a.distance = b.distance AND a.correct = b.correct";
        assert_eq!(rows(&ctx, &format!("SELECT 1 FROM {kept} AS a JOIN {fitted} AS b ON {same}")).await, 150);
        assert_eq!(rows(&ctx, &format!("SELECT 1 FROM {kept} WHERE correct")).await, 139);
        let wrong = "SELECT * FROM nearest_mean(flowers, label => label, model => (SELECT * FROM means LIMIT 5))";
        let message = ctx.sql(wrong).await.unwrap().collect().await.unwrap_err().to_string();
        assert!(message.contains("nearest_mean: the table given as `model` must have a mean of every feature"), "{message}");
    }

    /// Folds and resamples are around every selector.
    #[tokio::test]
    async fn a_selector_of_ones_own_is_repeated_as_ours_are() {
        let ctx = session().unwrap();
        let judged = "spread(sample.diabetes, label => label, k => 3, folds => 4) WHERE valid_score < 1 AND valid_error > 0";
        assert_eq!(rows(&ctx, &format!("SELECT * FROM {judged}")).await, 3);
        for selector in ["spread", "correlation_ratio"] {
            let evaluate = format!(
                "evaluate(sample.diabetes, label => label, model => 'linear', selector => '{selector}', k => 2, folds => 3)"
            );
            assert_eq!(rows(&ctx, &format!("SELECT * FROM {evaluate} WHERE fold = 3 AND split = 'test'")).await, 3);
            let halves =
                format!("stability_selection(sample.diabetes, label => label, selector => '{selector}', k => 1, resamples => 6)");
            assert_ne!(rows(&ctx, &format!("SELECT * FROM {halves}")).await, 0);
            let costs = format!(
                "{selector}(sample.diabetes, label => label, costs => MAP {{'bmi': 9.0}}, budget => 3, sample_rows => 200)"
            );
            assert_eq!(rows(&ctx, &format!("SELECT * FROM {costs} WHERE cost = 1")).await, 3);
        }
        let compared =
            "compare_selectors(sample.diabetes, label => label, k => 2, selectors => ['spread', 'correlation_ratio', 'omp'])";
        assert_eq!(rows(&ctx, &format!("SELECT * FROM {compared} WHERE valid_score < 1 AND n_features = 2")).await, 3);
        let ours =
            rows(&ctx, "SELECT * FROM compare_selectors(sample.diabetes, label => label, k => 2) WHERE selector = 'spread'")
                .await;
        assert_eq!(ours, 1, "one that reads moments is compared without being named");
    }

    /// Wider than what moments are kept of.
    #[tokio::test]
    async fn more_than_a_thousand_columns_are_ranked() {
        let ctx = session().unwrap();
        let columns: Vec<String> = (0..1200).map(|at| format!("id * {at} AS c{at}")).collect();
        rows(
            &ctx,
            &format!("CREATE TABLE wide AS SELECT {}, id AS label FROM (SELECT unnest([1, 2, 4, 7]) AS id)", columns.join(", ")),
        )
        .await;
        assert_eq!(rows(&ctx, "SELECT * FROM spread(wide, label => label, k => 3) WHERE feature LIKE 'c119%'").await, 3);
    }
}
