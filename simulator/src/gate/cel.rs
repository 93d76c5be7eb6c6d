//! CEL expressions of a suite, with the Kubernetes functions, over a claim or the plan. They return true or false;
//! anything else is an error in the suite.

use conductor::template::to_cel;
use kube_cel::KubeCelExt;
use kube_cel::cel::{Context, Program, Value as Cel};
use serde_json::Value;

/// Maximum length of an expression.
const CHARS_MAX: usize = 8_192;

/// An expression that returns true or false.
pub(super) struct Expression {
    program: Program,
    text: String,
}

impl Expression {
    /// Compiles an expression.
    ///
    /// # Errors
    /// It is too long or not CEL.
    pub fn read(text: &str) -> Result<Expression, String> {
        if text.len() > CHARS_MAX {
            return Err(format!("an expression is longer than {CHARS_MAX} characters"));
        }
        let program = Program::compile(text).map_err(|errors| {
            let first = errors.errors.first().map(|e| e.msg.clone()).unwrap_or_default();
            format!("{text:?} is not valid CEL ({first})")
        })?;
        Ok(Expression { program, text: text.to_owned() })
    }

    /// Evaluates it over named values.
    ///
    /// # Errors
    /// It references an unknown name, or returns neither true nor false.
    pub fn evaluate(&self, values: &[(&str, &Value)]) -> Result<bool, String> {
        let mut context = Context::default().with_all();
        for (name, value) in values {
            context.add_variable_from_value(*name, to_cel(value));
        }
        match self.program.execute(&context) {
            Ok(Cel::Bool(answer)) => Ok(answer),
            Ok(_) => Err(format!("{:?} returns something other than true or false", self.text)),
            Err(error) => Err(format!("{:?} cannot be evaluated ({error})", self.text)),
        }
    }
}
