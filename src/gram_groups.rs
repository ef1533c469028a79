//! `gram` for many groups at once: one accumulator for all of them.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray, LargeBinaryBuilder};
use datafusion::arrow::compute::{cast, filter, prep_null_mask_filter};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use pursuit_udfs::{GroupedMoments, Moments};

use crate::columns::Batch;
use crate::error::named;
use crate::progress::Active;

/// The moments of all groups of a query.
#[derive(Debug)]
pub(crate) struct GramGroups {
    pub function: String,
    pub moments: GroupedMoments,
    /// Arguments before the label.
    pub skip: usize,
    pub active: Arc<Active>,
}

impl GroupsAccumulator for GramGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_of: &[usize],
        wanted: Option<&BooleanArray>,
        groups: usize,
    ) -> Result<()> {
        let columns = &values[self.skip..];
        match wanted {
            None => self.update(columns, group_of, groups),
            Some(wanted) => {
                let wanted = prep_null_mask_filter(wanted);
                let columns = columns.iter().map(|column| Ok(filter(column, &wanted)?)).collect::<Result<Vec<_>>>()?;
                let group_of: Vec<usize> = wanted.values().set_indices().map(|row| group_of[row]).collect();
                self.update(&columns, &group_of, groups)
            }
        }
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let groups = match emit_to {
            EmitTo::All => usize::MAX,
            EmitTo::First(groups) => groups,
        };
        let taken = self.moments.take(groups).map_err(|error| named(&self.function, error))?;
        Ok(grams(&taken))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit_to)?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef], group_of: &[usize], groups: usize) -> Result<()> {
        let ours = |error| named(&self.function, error);
        self.moments.expect(groups).map_err(ours)?;
        let states = cast(&states[0], &DataType::LargeBinary)?;
        for (bytes, group) in states.as_binary::<i64>().iter().zip(group_of) {
            bytes.map_or(Ok(()), |bytes| self.moments.merge(*group, bytes)).map_err(ours)?;
        }
        Ok(())
    }

    /// Every row as a group of its own.
    fn convert_to_state(&self, values: &[ArrayRef], wanted: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let rows = values.first().map_or(0, |column| column.len());
        let group_of: Vec<usize> = (0..rows).collect();
        let (function, moments) = (self.function.clone(), GroupedMoments::new(self.moments.plan().clone()));
        let mut each = GramGroups { function, moments, skip: self.skip, active: self.active.clone() };
        each.update_batch(values, &group_of, wanted, rows)?;
        each.state(EmitTo::All)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.moments.bytes()
    }
}

fn grams(moments: &[Moments]) -> ArrayRef {
    let mut bytes = LargeBinaryBuilder::new();
    moments.iter().for_each(|moments| bytes.append_value(moments.to_bytes()));
    Arc::new(bytes.finish())
}

impl GramGroups {
    fn update(&mut self, columns: &[ArrayRef], group_of: &[usize], groups: usize) -> Result<()> {
        self.active.check().map_err(|error| named(&self.function, error))?;
        let batch = Batch::new(self.moments.plan(), columns)?;
        let moments = &mut self.moments;
        batch
            .hand_over(|_, label, weights, features| moments.update(group_of, groups, label, weights, features))
            .map_err(|error| named(&self.function, error))?;
        self.active.add_rows(group_of.len());
        Ok(())
    }
}
