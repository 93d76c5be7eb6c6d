//! Expressions of a suite: CEL with the Kubernetes functions, over one claim or over the plan. They give yes or no;
//! anything else is the suite's error.

use conductor::template::to_cel;
use kube_cel::KubeCelExt;
use kube_cel::cel::{Context, Program, Value as Cel};
use serde_json::Value;

/// Longest expression.
const CHARS_MAX: usize = 8_192;

/// A question that is answered with yes or no.
pub(super) struct Question {
    program: Program,
    text: String,
}

impl Question {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(text: &str) -> Result<Question, String> {
        if text.len() > CHARS_MAX {
            return Err(format!("an expression is longer than {CHARS_MAX} characters"));
        }
        let program = Program::compile(text).map_err(|errors| {
            let first = errors.errors.first().map(|e| e.msg.clone()).unwrap_or_default();
            format!("{text:?} cannot be read as CEL ({first})")
        })?;
        Ok(Question { program, text: text.to_owned() })
    }

    /// Asks it of values by name.
    ///
    /// # Errors
    /// It names what is not there, or its answer is neither yes nor no.
    pub fn ask(&self, values: &[(&str, &Value)]) -> Result<bool, String> {
        let mut context = Context::default().with_all();
        for (name, value) in values {
            context.add_variable_from_value(*name, to_cel(value));
        }
        match self.program.execute(&context) {
            Ok(Cel::Bool(answer)) => Ok(answer),
            Ok(_) => Err(format!("{:?} gives something other than true or false", self.text)),
            Err(error) => Err(format!("{:?} cannot be answered ({error})", self.text)),
        }
    }
}
