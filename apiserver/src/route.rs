//! Parses a path: what the client requests, before it is known whether it exists.

use percent_encoding::percent_decode_str;

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Liveness and its kin.
    /// Whether it lives; where `writes` is set, whether it can also write.
    Health {
        writes: bool,
    },
    Version,
    /// The list of paths.
    Index,
    /// `/api`
    Legacy,
    /// `/apis`
    Groups,
    /// `/apis/GROUP`
    Group(String),
    /// `/api/v1`, `/apis/GROUP/VERSION`
    GroupVersion(String, String),
    /// `/openapi/v3` and below.
    OpenApi3(Option<String>),
    OpenApi2,
    Objects(Target),
    Nothing,
}

/// What a path below a group and version names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Target {
    pub group: String,
    pub version: String,
    pub namespace: String,
    pub plural: String,
    pub name: String,
    pub sub: String,
    /// The old form of a watch: `/api/v1/watch/...`
    pub watch: bool,
}

impl Route {
    pub fn read(path: &str) -> Route {
        let parts: Vec<String> = path
            .trim_matches('/')
            .split('/')
            .map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned())
            .collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match parts.as_slice() {
            [""] => Route::Index,
            ["healthz" | "readyz", ..] => Route::Health { writes: true },
            ["livez", ..] => Route::Health { writes: false },
            ["version"] => Route::Version,
            ["openapi", "v2"] => Route::OpenApi2,
            ["openapi", "v3"] => Route::OpenApi3(None),
            ["openapi", "v3", rest @ ..] => Route::OpenApi3(Some(rest.join("/"))),
            ["api"] => Route::Legacy,
            ["apis"] => Route::Groups,
            ["api", version] => Route::GroupVersion(String::new(), (*version).to_owned()),
            ["apis", group] => Route::Group((*group).to_owned()),
            ["apis", group, version] => Route::GroupVersion((*group).to_owned(), (*version).to_owned()),
            ["api", version, rest @ ..] => Target::read("", version, rest),
            ["apis", group, version, rest @ ..] => Target::read(group, version, rest),
            _ => Route::Nothing,
        }
    }
}

impl Target {
    fn read(group: &str, version: &str, mut rest: &[&str]) -> Route {
        let mut target = Target { group: group.to_owned(), version: version.to_owned(), ..Target::default() };
        if let ["watch", below @ ..] = rest {
            target.watch = true;
            rest = below;
        }
        if let ["namespaces", namespace, below @ ..] = rest {
            match below {
                // What lives below a Namespace itself.
                [] | ["status" | "finalize"] if group.is_empty() => {}
                [] => return Route::Nothing,
                below => {
                    target.namespace = (*namespace).to_owned();
                    rest = below;
                }
            }
        }
        match rest {
            [plural] => target.plural = (*plural).to_owned(),
            [plural, name] => {
                target.plural = (*plural).to_owned();
                target.name = (*name).to_owned();
            }
            [plural, name, sub] => {
                target.plural = (*plural).to_owned();
                target.name = (*name).to_owned();
                target.sub = (*sub).to_owned();
            }
            _ => return Route::Nothing,
        }
        if target.plural.is_empty() || (rest.len() > 1 && target.name.is_empty()) {
            return Route::Nothing;
        }
        Route::Objects(target)
    }
}

#[test]
fn paths_are_taken_apart() {
    let target = |path: &str| match Route::read(path) {
        Route::Objects(t) => {
            [t.group, t.version, t.namespace, t.plural, t.name, t.sub].join("|")
                + if t.watch { "|watch" } else { "" }
        }
        other => format!("{other:?}"),
    };
    for (path, expected) in [
        ("/api/v1/namespaces", "|v1||namespaces||"),
        ("/api/v1/namespaces/a", "|v1||namespaces|a|"),
        ("/api/v1/namespaces/a/status", "|v1||namespaces|a|status"),
        ("/api/v1/namespaces/a/pods", "|v1|a|pods||"),
        ("/api/v1/namespaces/a/pods/b/status", "|v1|a|pods|b|status"),
        ("/apis/g.io/v1/widgets", "g.io|v1||widgets||"),
        ("/apis/g.io/v1/namespaces/a/widgets/b", "g.io|v1|a|widgets|b|"),
        ("/api/v1/watch/namespaces/a/pods", "|v1|a|pods|||watch"),
        ("/apis/g.io/v1", "GroupVersion(\"g.io\", \"v1\")"),
        ("/api/v1/namespaces/a/pods/b/c/d", "Nothing"),
        ("/apis/g.io/v1/namespaces/a%2Fb/widgets", "g.io|v1|a/b|widgets||"),
        ("/nothing", "Nothing"),
        ("/", "Index"),
    ] {
        assert_eq!(target(path), expected, "{path}");
    }
}
