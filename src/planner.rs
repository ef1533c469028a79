//! The named door: `omp(patients, label => outcome, k => 10)` with subqueries, CTEs, bare names, any letter case.
//! It only rearranges: names become the options' JSON, and the positional door does the rest.

use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, lit, scalar_subquery};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart, TableAlias,
    TableFactor,
};
use pursuit_udfs::{Asks, Error, Settings, Spec, Value, did_you_mean, shown};

use crate::engine::Registry;
use crate::error::named;
use crate::function::{settings_of, takes_relation, usage, value_of};
use crate::question::check_option;

#[derive(Debug)]
pub(crate) struct SelectPlanner {
    registry: Arc<Registry>,
}

impl SelectPlanner {
    pub(crate) fn new(registry: Arc<Registry>) -> Self {
        Self { registry }
    }
}

impl RelationPlanner for SelectPlanner {
    fn plan_relation(&self, relation: TableFactor, context: &mut dyn RelationPlannerContext) -> Result<RelationPlanning> {
        let Some((spec, call)) = self.recognise(&relation)? else {
            self.check_spelling(&relation, context)?;
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let arguments = Arguments::bind(&spec, call.arguments, context)?;
        let source = context.context_provider().get_table_function_source(spec.name, arguments.into_exprs())?;
        let plan = LogicalPlanBuilder::scan(spec.name, source, None)?.build()?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, call.alias))))
    }
}

impl SelectPlanner {
    /// A function that nobody knows and whose name is close to one of ours is meant to be that.
    fn check_spelling(&self, relation: &TableFactor, context: &mut dyn RelationPlannerContext) -> Result<()> {
        let (TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. }) = relation else {
            return Ok(());
        };
        let [ObjectNamePart::Identifier(name)] = &name.0[..] else { return Ok(()) };
        let names: Vec<&str> =
            self.registry.specs.iter().flat_map(|spec| spec.aliases.iter().copied().chain([spec.name])).collect();
        let hint = did_you_mean(&name.value, &names);
        if hint == ";" {
            return Ok(());
        }
        // Only the session knows the functions of others; without arguments it says at least whether there is one.
        match context.context_provider().get_table_function_source(&name.value.to_lowercase(), Vec::new()) {
            Err(error) if error.strip_backtrace().contains("not found") => {
                Err(DataFusionError::Plan(format!("no function named `{}`{}", shown(&name.value), hint)))
            }
            _ => Ok(()),
        }
    }
}

struct SqlCall {
    arguments: Vec<FunctionArg>,
    alias: Option<TableAlias>,
}

impl SelectPlanner {
    /// A call of one of our functions, in any of the forms that SQL has for it. Every modifier that we would drop is refused.
    fn recognise(&self, relation: &TableFactor) -> Result<Option<(Arc<Spec>, SqlCall)>> {
        let (name, arguments, alias, modifier) = match relation {
            TableFactor::Table {
                name,
                alias,
                args: Some(arguments),
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_hints,
            } => {
                let plain = with_hints.is_empty()
                    && version.is_none()
                    && partitions.is_empty()
                    && json_path.is_none()
                    && index_hints.is_empty();
                let modifier = match (sample, *with_ordinality, plain && arguments.settings.is_none()) {
                    (Some(_), ..) => Some("TABLESAMPLE"),
                    (_, true, _) => Some("WITH ORDINALITY"),
                    (.., false) => Some("a hint"),
                    _ => None,
                };
                (name, arguments.args.clone(), alias, modifier)
            }
            TableFactor::Function { lateral: _, name, args, with_ordinality, alias } => {
                (name, args.clone(), alias, with_ordinality.then_some("WITH ORDINALITY"))
            }
            _ => return Ok(None),
        };
        let [ObjectNamePart::Identifier(name)] = &name.0[..] else { return Ok(None) };
        let Some(spec) = self.registry.find(&name.value) else { return Ok(None) };
        if let Some(modifier) = modifier {
            return Err(named(spec.name, Error::call(format!("{modifier} cannot follow the call; put it into the subquery"))));
        }
        Ok(Some((spec, SqlCall { arguments, alias: alias.clone() })))
    }
}

/// The arguments of a call by what they mean.
struct Arguments {
    input: Expr,
    label: Expr,
    options: Settings,
    /// Options that are relations: only the planner can see what they are.
    relations: Vec<(String, Expr)>,
}

const POSITIONS: [&str; 4] = ["table", "label", "k", "options"];

impl Arguments {
    fn bind(spec: &Spec, arguments: Vec<FunctionArg>, context: &mut dyn RelationPlannerContext) -> Result<Self> {
        let error = |message: String| named(spec.name, Error::call(message));
        let mut slots: [Option<ast::Expr>; 4] = Default::default();
        let mut options = Settings::new();
        let mut relations: Vec<(String, Expr)> = Vec::new();
        let mut named_before = None;
        for (position, argument) in arguments.into_iter().enumerate() {
            let (name, value) = name_and_value(spec, argument, context)?;
            let value = without_brackets(value);
            let name = match name {
                Some(name) => {
                    named_before = Some(name.clone());
                    name.to_lowercase()
                }
                None if named_before.is_some() => {
                    let before = named_before.unwrap_or_default();
                    return Err(error(format!("an argument without a name follows `{}`; give it a name too", shown(&before))));
                }
                None => match POSITIONS.get(position) {
                    Some(name) => name.to_string(),
                    None => {
                        return Err(error(format!(
                            "takes four arguments without a name (table, label, k, options), got {}",
                            position + 1
                        )));
                    }
                },
            };
            let slot = POSITIONS.iter().position(|slot| *slot == name || (*slot == "table" && name == "input"));
            let is_free = match slot {
                Some(slot) => slots[slot].replace(value).is_none(),
                None => {
                    check_option(spec, &name).map_err(|e| named(spec.name, e))?;
                    let is_relation =
                        matches!(value, ast::Expr::Subquery(_) | ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_))
                            && takes_relation(spec, &name);
                    match if is_relation { Some(relation(spec, value.clone(), context)?) } else { None } {
                        Some(plan @ Expr::ScalarSubquery(_)) => {
                            let is_free = relations.iter().all(|(other, _)| *other != name);
                            relations.push((name.clone(), plan));
                            is_free
                        }
                        _ => options.insert(name.clone(), option_value(spec, &name, value, context)?).is_none(),
                    }
                }
            };
            if !is_free {
                return Err(error(format!("`{}` is given twice", shown(&name))));
            }
        }
        let [input, label, k, more] = slots;
        let usage = usage(spec);
        let input = input.ok_or_else(|| error(format!("missing the table; {usage}")))?;
        let label = match label {
            Some(label) => match option_value(spec, "label", label, context)? {
                Value::String(label) => lit(label),
                Value::Null => lit(ScalarValue::Null),
                other => {
                    let shown = pursuit_udfs::options::show(&other);
                    return Err(error(format!("`label` must be the name of a column, got {shown}")));
                }
            },
            None if matches!(spec.asks, Asks::Label | Asks::Choice) => return Err(error(format!("missing `label`; {usage}"))),
            None => lit(ScalarValue::Null),
        };
        let k = match k {
            Some(k) => option_value(spec, "k", k, context)?,
            None => Value::Null,
        };
        if !k.is_null() {
            options.insert("k".into(), k);
        }
        let more = more.map(|more| given_options(spec, more, context)).transpose()?;
        for (name, value) in more.unwrap_or_default() {
            if options.insert(name.clone(), value).is_some() {
                return Err(error(format!("`{}` is given twice", shown(&name))));
            }
        }
        let input = relation(spec, input, context)?;
        Ok(Self { input, label, options, relations })
    }

    fn into_exprs(self) -> Vec<Expr> {
        // k is among the options.
        let arguments = [self.input, self.label, lit(ScalarValue::Null), lit(Value::Object(self.options).to_string())];
        let relations = self.relations.into_iter().flat_map(|(name, relation)| [lit(name), relation]);
        arguments.into_iter().chain(relations).collect()
    }
}

/// `value`, `name => value`, `name := value` or `name = value`.
fn name_and_value(
    spec: &Spec,
    argument: FunctionArg,
    context: &dyn RelationPlannerContext,
) -> Result<(Option<String>, ast::Expr)> {
    let unreadable = |argument: String| {
        named(spec.name, Error::call(format!("cannot read the argument `{}`; write name => value", shown(&argument))))
    };
    match argument {
        // `k = 20` reaches us as a comparison.
        FunctionArg::Unnamed(FunctionArgExpr::Expr(ast::Expr::BinaryOp { left, op: BinaryOperator::Eq, right })) => match *left {
            ast::Expr::Identifier(name) => Ok((Some(context.normalize_ident(name)), *right)),
            left => Err(unreadable(format!("{left} = {right}"))),
        },
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Ok((None, value)),
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. }
        | FunctionArg::ExprNamed { name: ast::Expr::Identifier(name), arg: FunctionArgExpr::Expr(value), .. } => {
            Ok((Some(context.normalize_ident(name)), value))
        }
        other => Err(unreadable(other.to_string())),
    }
}

/// `((SELECT …))` is `(SELECT …)`.
fn without_brackets(mut value: ast::Expr) -> ast::Expr {
    while let ast::Expr::Nested(inner) = value {
        value = *inner;
    }
    value
}

/// The options of the fourth place.
fn given_options(spec: &Spec, options: ast::Expr, context: &mut dyn RelationPlannerContext) -> Result<Settings> {
    let options = option_value(spec, "options", options, context)?;
    settings_of(options).map_err(|error| named(spec.name, error))
}

/// The first argument: a subquery, or the name of something. CTEs are known to the planner alone; other names are looked
/// up by the table function, which can also say what there is instead.
fn relation(spec: &Spec, input: ast::Expr, context: &mut dyn RelationPlannerContext) -> Result<Expr> {
    match without_brackets(input) {
        ast::Expr::Subquery(subquery) => {
            let derived = TableFactor::Derived { lateral: false, subquery, alias: None, sample: None };
            Ok(scalar_subquery(Arc::new(context.plan(derived)?)))
        }
        ast::Expr::Identifier(name) => named_relation(vec![name], context),
        ast::Expr::CompoundIdentifier(names) => named_relation(names, context),
        // TABLE(t) arrives as a function call.
        ast::Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("table") => match function.args {
            FunctionArguments::List(list) => match &list.args[..] {
                [FunctionArg::Unnamed(FunctionArgExpr::Expr(inner))] => relation(spec, inner.clone(), context),
                _ => Err(named(spec.name, Error::call("TABLE takes one name"))),
            },
            FunctionArguments::Subquery(subquery) => relation(spec, ast::Expr::Subquery(subquery), context),
            FunctionArguments::None => Err(named(spec.name, Error::call("TABLE takes one name"))),
        },
        other => match option_value(spec, "table", other, context)? {
            Value::String(name) => {
                let bare = name.chars().all(|c| c.is_alphanumeric() || c == '_');
                if bare { named_relation(vec![Ident::with_quote('"', name)], context) } else { Ok(lit(name)) }
            }
            other => Err(named(
                spec.name,
                Error::call(format!(
                    "the first argument must be a table or a subquery, got {}",
                    pursuit_udfs::options::show(&other)
                )),
            )),
        },
    }
}

fn named_relation(names: Vec<Ident>, context: &mut dyn RelationPlannerContext) -> Result<Expr> {
    let name = ObjectName::from(names);
    // With its quotes, because a dot may be part of a name.
    let text = context
        .object_name_to_table_reference(name.clone())
        .map_or_else(|_| name.to_string(), |reference| reference.to_quoted_string());
    let factor = TableFactor::Table {
        name,
        alias: None,
        args: None,
        with_hints: vec![],
        version: None,
        with_ordinality: false,
        partitions: vec![],
        json_path: None,
        sample: None,
        index_hints: vec![],
    };
    Ok(match context.plan(factor) {
        Ok(plan) => scalar_subquery(Arc::new(plan)),
        Err(_) => lit(text),
    })
}

/// A constant as a value. Bare words are names, also inside brackets: `exclude => [id, created]`.
fn option_value(spec: &Spec, option: &str, value: ast::Expr, context: &mut dyn RelationPlannerContext) -> Result<Value> {
    match value {
        ast::Expr::Identifier(name) => Ok(Value::from(context.normalize_ident(name))),
        ast::Expr::CompoundIdentifier(names) => {
            Ok(Value::from(names.into_iter().map(|name| context.normalize_ident(name)).collect::<Vec<_>>().join(".")))
        }
        ast::Expr::Array(array) => {
            array.elem.into_iter().map(|item| option_value(spec, option, item, context)).collect::<Result<_>>().map(Value::Array)
        }
        ast::Expr::Nested(inner) => option_value(spec, option, *inner, context),
        ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Placeholder(id), .. }) => Err(placeholder(spec, &id)),
        other => {
            let text = other.to_string();
            let constant = || named(spec.name, Error::call(format!("`{option}` must be a constant, got {}", shown(&text))));
            let expr = context.sql_to_expr(other, &DFSchema::empty()).map_err(|_| constant())?;
            let simplifier = ExprSimplifier::new(SimplifyContext::default());
            let simple =
                simplifier.coerce(expr, &DFSchema::empty()).and_then(|expr| simplifier.simplify(expr)).map_err(|_| constant())?;
            match simple {
                Expr::Literal(value, _) => value_of(&value).map_err(|error| named(spec.name, error))?.ok_or_else(constant),
                Expr::Placeholder(inner) => Err(placeholder(spec, &inner.id)),
                _ => Err(constant()),
            }
        }
    }
}

fn placeholder(spec: &Spec, id: &str) -> DataFusionError {
    named(spec.name, Error::call(format!("`{id}` cannot be an argument; write the value itself, or use it inside the subquery")))
}
