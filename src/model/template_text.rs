//! Finds the expressions in a string: `${...}`, which can contain braces and quotes, and the escape `$${`. `template`
//! compiles them.

use super::error::ValueError;

/// A piece of a string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Literal(String),
    /// The text of an expression, without `${}`.
    Expression(String),
}

/// Splits a string into literals and expressions.
///
/// # Errors
/// An expression that is empty or does not end.
pub(crate) fn split(text: &str) -> Result<Vec<Piece>, ValueError> {
    let (mut pieces, mut literal, mut rest) = (Vec::new(), String::new(), text);
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            literal.push_str(&rest[..at - 1]);
            literal.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        literal.push_str(&rest[..at]);
        let inside = &rest[at + 2..];
        let length = length_of(inside)
            .ok_or_else(|| ValueError::new(text, "has a `${` without its `}`", "close it, or write $${"))?;
        if inside[..length].trim().is_empty() {
            return Err(ValueError::new(text, "has an empty expression", "write one, or write $${"));
        }
        if !literal.is_empty() {
            pieces.push(Piece::Literal(std::mem::take(&mut literal)));
        }
        pieces.push(Piece::Expression(inside[..length].trim().to_owned()));
        rest = &inside[length + 1..];
    }
    literal.push_str(rest);
    if !literal.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    Ok(pieces)
}

/// The position of the closing brace of an expression.
fn length_of(text: &str) -> Option<usize> {
    let (mut depth, mut quote, mut escaped) = (0_usize, None, false);
    for (at, c) in text.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(end) if c == end => quote = None,
            Some(_) => {}
            None => match c {
                '"' | '\'' => quote = Some(c),
                '{' => depth += 1,
                '}' if depth == 0 => return Some(at),
                '}' => depth -= 1,
                _ => {}
            },
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> String {
        match split(text) {
            Ok(pieces) => pieces
                .iter()
                .map(|piece| match piece {
                    Piece::Literal(literal) => format!("[{literal}]"),
                    Piece::Expression(inside) => format!("<{inside}>"),
                })
                .collect(),
            Err(error) => error.problem,
        }
    }

    #[test]
    fn expressions_are_found_in_text() {
        for (text, pieces) in [
            ("", "[]"),
            ("plain", "[plain]"),
            ("${a}", "<a>"),
            (" ${a}", "[ ]<a>"),
            ("x-${ a.b }-y${c}", "[x-]<a.b>[-y]<c>"),
            ("${{'a': 1}['a']}", "<{'a': 1}['a']>"),
            ("${'}'}", "<'}'>"),
            (r#"${"\"}"}"#, r#"<"\"}">"#),
            ("$${a}", "[${a}]"),
            ("a$${b}${c}", "[a${b}]<c>"),
            ("$a {b} $", "[$a {b} $]"),
            ("${a", "has a `${` without its `}`"),
            ("${'a}", "has a `${` without its `}`"),
            ("${ }", "has an empty expression"),
        ] {
            assert_eq!(shown(text), pieces, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[${}'\"\\\\a é]{0,24}") {
            let _ = split(&text);
        }

        #[test]
        fn text_without_dollars_is_itself(text in "[^$]{0,24}") {
            prop_assert_eq!(split(&text), Ok(vec![Piece::Literal(text)]));
        }
    }
}
