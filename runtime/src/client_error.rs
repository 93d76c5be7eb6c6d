//! A client's error in one line: with its causes, because the outermost alone often says only "service error", and
//! without anything that a credential plugin printed or a kubeconfig holds. And the log of an outage, once for each
//! reason, however often a watch retries.

use kube::client::AuthError;
use std::collections::BTreeSet;

/// The different reasons that are logged of one outage.
const REASONS_MAX: usize = 4;

/// An error and its causes in one line. Where credentials are the cause, our text replaces the library's, which may quote
/// them.
pub fn one_line(error: &dyn std::error::Error) -> String {
    let mut causes = std::iter::successors(error.source(), |cause| cause.source());
    if let Some(text) = causes.find_map(of_credentials) {
        return text;
    }
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !line.contains(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        cause = error.source();
    }
    line
}

/// What is wrong with the credentials of a kubeconfig, without the arguments and the output of a plugin. `None` where they
/// are not the cause.
fn of_credentials(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let wrong = error.downcast_ref::<AuthError>()?;
    Some(match wrong {
        AuthError::AuthExecRun { out, .. } => format!(
            "the command in user.exec of the kubeconfig failed ({}); run it by hand to see why (its output is not shown, it may hold a token)",
            out.status
        ),
        AuthError::AuthExecParse(_) | AuthError::AuthExec(_) | AuthError::AuthExecSerialize(_) => {
            "the command in user.exec of the kubeconfig did not print an ExecCredential".to_owned()
        }
        AuthError::ReadTokenFile(error, _) => format!(
            "the file that tokenFile of the kubeconfig names cannot be read: {error} (its name is not shown, it may be a token)"
        ),
        AuthError::ParseTokenKey(_) => {
            "the token-key of the kubeconfig's auth-provider fits nothing".to_owned()
        }
        AuthError::MalformedTokenExpirationDate(_) => "the token's expiry is not a time".to_owned(),
        AuthError::InvalidBasicAuth(_) => {
            "username or password holds characters that no header takes".to_owned()
        }
        AuthError::InvalidBearerToken(_) => "the token holds characters that no header takes".to_owned(),
        other => other.to_string(),
    })
}

/// A failing watch, from its first failure until it works again. Logs each reason once.
#[derive(Debug)]
pub struct Outage {
    kind: String,
    reasons: BTreeSet<String>,
    failures: u32,
}

impl Outage {
    /// No outage yet of the watch of this kind.
    pub fn none(kind: &str) -> Outage {
        Outage { kind: kind.to_owned(), reasons: BTreeSet::new(), failures: 0 }
    }

    /// The list or the watch failed.
    pub fn fails(&mut self, why: &str) {
        self.failures += 1;
        let (kind, failures) = (&self.kind, self.failures);
        let is_new = self.reasons.len() < REASONS_MAX && self.reasons.insert(why.to_owned());
        match is_new {
            true => tracing::warn!(kind, why, "the watch failed, retrying"),
            false => tracing::debug!(kind, why, failures, "the watch failed again"),
        }
    }

    /// The watch works: the next failure begins another outage.
    pub fn ends(&mut self) {
        if self.failures > 0 {
            tracing::info!(kind = self.kind, failures = self.failures, "the watch works again");
        }
        *self = Outage::none(&self.kind);
    }
}

/// Keeps log lines for tests, here and in other crates.
#[doc(hidden)]
pub mod logged {
    use std::fmt;
    use std::sync::{Arc, Mutex};
    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Level, Metadata, Subscriber};

    /// Keeps warnings and errors of one thread, each as its fields.
    #[derive(Clone, Default)]
    pub struct Warnings(Arc<Mutex<Vec<String>>>);

    impl Warnings {
        /// Every line that was logged so far.
        pub fn all(&self) -> Vec<String> {
            self.0.lock().expect("no test panics while it logs").clone()
        }
    }

    struct Line(String);

    impl Visit for Line {
        fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
            self.0.push_str(&format!("{}={value:?} ", field.name()));
        }
    }

    impl Subscriber for Warnings {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            *metadata.level() <= Level::WARN
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            let mut line = Line(String::new());
            event.record(&mut line);
            self.0.lock().expect("no test panics while it logs").push(line.0);
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }
}

#[cfg(test)]
mod tests {
    use super::logged::Warnings;
    use super::*;

    #[test]
    fn an_outage_is_logged_once_for_each_reason_with_its_kind() {
        let warnings = Warnings::default();
        let _logged = tracing::subscriber::set_default(warnings.clone());
        let mut outage = Outage::none("ClaimQuota");
        for _ in 0..24 {
            outage.fails("connection refused");
            outage.fails("forbidden");
        }
        assert_eq!(warnings.all().len(), 2, "{:?}", warnings.all());
        assert!(warnings.all().iter().all(|line| line.contains("ClaimQuota")), "{:?}", warnings.all());
        outage.ends();
        outage.fails("connection refused");
        assert_eq!(warnings.all().len(), 3, "another outage is logged again");
    }
}
