//! Finding the expressions in a text: `${...}`, with braces and quotes inside them, and `$${` for the characters
//! themselves. What stands in an expression is not read here.

use crate::model::ValueError;

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Words(String),
    /// The text of an expression, without its brackets.
    Expression(String),
}

/// Takes a text apart.
///
/// # Errors
/// An expression that is empty or does not end.
pub(super) fn split(text: &str) -> Result<Vec<Piece>, ValueError> {
    let (mut pieces, mut words, mut rest) = (Vec::new(), String::new(), text);
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            words.push_str(&rest[..at - 1]);
            words.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        words.push_str(&rest[..at]);
        let inside = &rest[at + 2..];
        let length = length_of(inside)
            .ok_or_else(|| ValueError::new(text, "has a `${` without its `}`", "close it, or write $${"))?;
        if inside[..length].trim().is_empty() {
            return Err(ValueError::new(text, "has an empty expression", "write one, or write $${"));
        }
        if !words.is_empty() {
            pieces.push(Piece::Words(std::mem::take(&mut words)));
        }
        pieces.push(Piece::Expression(inside[..length].trim().to_owned()));
        rest = &inside[length + 1..];
    }
    words.push_str(rest);
    if !words.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Words(words));
    }
    Ok(pieces)
}

/// Where the closing brace of an expression is.
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
                    Piece::Words(words) => format!("[{words}]"),
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
            prop_assert_eq!(split(&text), Ok(vec![Piece::Words(text)]));
        }
    }
}
