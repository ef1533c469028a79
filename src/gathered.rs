//! What is kept of a table while it is read: its rows, or their second moments in parts.

use pursuit_udfs::{Block, Data, Numbers, PartedMoments, Parting, Parts, Plan, Result, Rows, RowsBuilder, Sampled};

use crate::call::Call;

/// Rows, or moments in parts.
#[derive(Debug, Clone)]
pub(crate) enum Gathered {
    Rows(Box<RowsBuilder>),
    Moments(Box<PartedMoments>),
    Sample(Box<Sample>),
}

/// Rows that are drawn, and the parts of the moments that are made of them, if that is what is wanted.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    drawn: Sampled,
    plan: Plan,
    parting: Option<Parting>,
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
        let (plan, parting) = (call.plan.clone(), call.parting);
        if let Some(draw) = call.draw {
            return Gathered::Sample(Box::new(Sample { drawn: Sampled::new(plan.clone(), draw), plan, parting }));
        }
        match parting {
            Some(parting) => Gathered::Moments(Box::new(PartedMoments::new(plan, parting))),
            None => Gathered::Rows(Box::new(RowsBuilder::new(plan))),
        }
    }

    /// Bytes of the names of texts, where rows are kept.
    pub(crate) fn name_bytes(&self) -> usize {
        match self {
            Gathered::Rows(builder) => builder.name_bytes(),
            Gathered::Moments(_) | Gathered::Sample(_) => 0,
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
            Gathered::Sample(sample) => sample.drawn.push(rows, label, weights, features),
        }
    }

    pub(crate) fn append(&mut self, other: Gathered) -> Result<()> {
        match (self, other) {
            (Gathered::Rows(mine), Gathered::Rows(theirs)) => mine.append(*theirs),
            (Gathered::Moments(mine), Gathered::Moments(theirs)) => mine.merge(*theirs)?,
            (Gathered::Sample(mine), Gathered::Sample(theirs)) => mine.drawn.merge(theirs.drawn)?,
            _ => unreachable!("a call reads in one way"),
        }
        Ok(())
    }

    /// Bytes of what was gathered.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Gathered::Rows(builder) => builder.bytes(),
            Gathered::Moments(moments) => moments.bytes(),
            Gathered::Sample(sample) => sample.drawn.bytes(),
        }
    }

    /// Bytes that [`Self::finish`] will need on top.
    pub(crate) fn finish_bytes(&self) -> usize {
        match self {
            Gathered::Rows(builder) => builder.finish_bytes(),
            Gathered::Moments(moments) => moments.bytes() / 2,
            Gathered::Sample(sample) => sample.drawn.finish_bytes(),
        }
    }

    pub(crate) fn finish(self, held_out: Option<&Gathered>) -> Result<Read> {
        match self {
            Gathered::Rows(builder) => of_rows(*builder, held_out),
            Gathered::Moments(moments) => of_moments(*moments),
            Gathered::Sample(sample) => {
                let Sample { drawn, plan, parting } = *sample;
                let (mut builder, seen) = drawn.into_builder()?;
                let mut read = match parting {
                    None => of_rows(builder, held_out)?,
                    Some(parting) => {
                        let mut moments = PartedMoments::new(plan, parting);
                        builder.hand_over(|rows, label, weights, features| moments.update(rows, label, weights, features))?;
                        of_moments(moments)?
                    }
                };
                read.data.add_unread(&seen);
                Ok(read)
            }
        }
    }
}

fn of_rows(builder: RowsBuilder, held_out: Option<&Gathered>) -> Result<Read> {
    let Some(Gathered::Rows(held_out)) = held_out else { return Ok(Read::of(Data::Rows(builder.finish()?))) };
    let (rows, held_out) = builder.finish_with(RowsBuilder::clone(held_out))?;
    Ok(Read { held_out: Some(held_out), ..Read::of(Data::Rows(rows)) })
}

fn of_moments(moments: PartedMoments) -> Result<Read> {
    let (whole, parts) = moments.finish()?;
    Ok(Read { parts: Some(Parts { whole: whole.clone(), parts }), ..Read::of(Data::Gram(whole.finish())) })
}
