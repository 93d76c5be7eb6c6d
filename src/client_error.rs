//! What a client's error says to people, in one line: with its causes, because the outermost alone often says no more
//! than "service error", and without anything that credential plugins print or that a kubeconfig holds.

use kube::client::AuthError;

/// An error and its causes; the outermost alone often says no more than "service error". Where credentials are the cause,
/// the library's text may quote them, and ours takes its place.
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

/// What is wrong with the credentials of a kubeconfig, without a word of what a plugin printed or was called with. Nothing
/// where that is not the cause of an error.
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
