//! What is kept of a table while it is read: its rows, or their second moments in parts.

use pursuit_udfs::{Block, Data, Numbers, PartedMoments, Parts, Result, Rows, RowsBuilder};

use crate::call::Call;

/// Rows, or moments in parts.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant)] // there is one for each group, and rows take more than their builder
pub(crate) enum Gathered {
    Rows(RowsBuilder),
    Moments(Box<PartedMoments>),
}

/// A table that has been read.
#[derive(Debug)]
pub(crate) struct Read {
    pub data: Data,
    /// The parts of moments.
    pub parts: Option<Parts>,
    /// The rows of a second table.
    pub held_out: Option<Rows>,
}

impl Read {
    pub(crate) fn of(data: Data) -> Self {
        Self { data, parts: None, held_out: None }
    }
}

impl Gathered {
    pub(crate) fn new(call: &Call) -> Self {
        match call.parting {
            Some(parting) => Gathered::Moments(Box::new(PartedMoments::new(call.plan.clone(), parting))),
            None => Gathered::Rows(RowsBuilder::new(call.plan.clone())),
        }
    }

    /// Bytes of the names of texts, where rows are kept.
    pub(crate) fn name_bytes(&self) -> usize {
        match self {
            Gathered::Rows(builder) => builder.name_bytes(),
            Gathered::Moments(_) => 0,
        }
    }

    pub(crate) fn push(
        &mut self,
        rows: usize,
        label: Block<'_>,
        weights: Option<&dyn Numbers>,
        features: &[Block<'_>],
    ) -> Result<()> {
        match self {
            Gathered::Rows(builder) => builder.push(rows, label, weights, features),
            Gathered::Moments(moments) => moments.update(rows, label, weights, features),
        }
    }

    pub(crate) fn append(&mut self, other: Gathered) -> Result<()> {
        match (self, other) {
            (Gathered::Rows(mine), Gathered::Rows(theirs)) => mine.append(theirs),
            (Gathered::Moments(mine), Gathered::Moments(theirs)) => mine.merge(*theirs)?,
            _ => unreachable!("a call reads in one way"),
        }
        Ok(())
    }

    /// Bytes of what was gathered.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Gathered::Rows(builder) => builder.bytes(),
            Gathered::Moments(moments) => moments.bytes(),
        }
    }

    /// Bytes that [`Self::finish`] will need on top.
    pub(crate) fn finish_bytes(&self) -> usize {
        match self {
            Gathered::Rows(builder) => builder.finish_bytes(),
            Gathered::Moments(moments) => moments.bytes() / 2,
        }
    }

    pub(crate) fn finish(self, held_out: Option<&Gathered>) -> Result<Read> {
        match (self, held_out) {
            (Gathered::Rows(builder), Some(Gathered::Rows(held_out))) => {
                let (rows, held_out) = builder.finish_with(held_out.clone())?;
                Ok(Read { held_out: Some(held_out), ..Read::of(Data::Rows(rows)) })
            }
            (Gathered::Rows(builder), _) => Ok(Read::of(Data::Rows(builder.finish()?))),
            (Gathered::Moments(moments), _) => {
                let (whole, parts) = moments.finish()?;
                Ok(Read { parts: Some(Parts { whole: whole.clone(), parts }), ..Read::of(Data::Gram(whole.finish())) })
            }
        }
    }
}
