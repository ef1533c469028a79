//! The moments as bytes.

use serde::{Deserialize, Serialize};

use super::{Column, Moments, triangle};
use crate::kernels::double::Double;
use crate::reading::plan::Plan;
use crate::reading::table::Seen;
use crate::{Error, Result};

const MAGIC: &[u8; 8] = b"pursuit1";

#[derive(Serialize, Deserialize)]
struct Header {
    plan: Plan,
    columns: Vec<Column>,
    origins: Vec<Option<f64>>,
    seen: Seen,
    counts_classes: bool,
}

impl Moments {
    /// The moments as bytes, to be stored, sent and merged later.
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = Header {
            plan: Plan::clone(&self.plan),
            columns: self.columns.clone(),
            origins: self.origins.clone(),
            seen: self.seen.clone(),
            counts_classes: self.places.classes.is_some(),
        };
        let header = serde_json::to_vec(&header).expect("a header of numbers and names is valid JSON");
        let mut bytes = Vec::with_capacity(16 + header.len() + self.totals.len() * size_of::<Double>());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&(header.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&header);
        for total in &self.totals {
            bytes.extend_from_slice(&total.high.to_le_bytes());
            bytes.extend_from_slice(&total.low.to_le_bytes());
        }
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::parse(bytes)
            .ok_or_else(|| Error::call("this value is not a gram, or of another version; make it again with gram(…)"))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let (length, rest) = rest.split_first_chunk::<8>()?;
        let (header, numbers) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        let header: Header = serde_json::from_slice(header).ok()?;
        let features = header.plan.features.len();
        let in_range = |column: &Column| match column {
            Column::Number(feature) | Column::Null(feature) | Column::Level(feature, _) => *feature < features,
            _ => true,
        };
        if header.columns.first() != Some(&Column::One)
            || !header.columns.iter().all(in_range)
            || header.seen.missing.len() != features
            || header.origins.len() > header.columns.len()
            || header.plan.keeps_number() != header.columns.contains(&Column::Label)
        {
            return None;
        }
        let mut moments = Self::with_columns(header.plan.into(), header.columns, header.seen, header.counts_classes);
        moments.origins = header.origins;
        let (numbers, rest) = numbers.as_chunks::<8>();
        moments.totals = numbers
            .chunks_exact(2)
            .map(|pair| Double { high: f64::from_le_bytes(pair[0]), low: f64::from_le_bytes(pair[1]) })
            .collect();
        let complete = moments.totals.is_empty() || moments.totals.len() == triangle(moments.columns.len());
        (rest.is_empty() && numbers.len().is_multiple_of(2) && complete).then_some(moments)
    }
}
