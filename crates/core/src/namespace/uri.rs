//! URIs of the resources of many servers: `caribou:LABEL/URI`, with the URI as its server wrote it.
//!
//! What stands before it is opaque to whoever normalises URIs, so nothing behind it is touched: a URI is read back byte
//! for byte, and a template that was expanded is the expansion of the server's own template. A user interface of an MCP
//! App is a resource whose URI begins with `ui://`, and hosts take no other: that of a server is shown as
//! `ui://caribou/LABEL/URI`.

use super::Label;

const SCHEME: &str = "caribou:";

/// How URIs of user interfaces begin.
const INTERFACE: &str = "ui://";

/// How they begin as they are shown.
const SHOWN_INTERFACE: &str = "ui://caribou/";

/// Whether it is the URI of a user interface.
pub(super) fn is_interface(uri: &str) -> bool {
    uri.starts_with(INTERFACE)
}

/// The URI, or the template of URIs, that `uri` of this server is shown as.
pub fn shown_uri(label: &Label, uri: &str) -> String {
    let scheme = if is_interface(uri) { SHOWN_INTERFACE } else { SCHEME };
    format!("{scheme}{}/{uri}", label.encoded())
}

/// The server of a shown URI, and the URI as that server knows it; `None` = it is not shown by us.
pub fn raw_uri(shown: &str) -> Option<(Label, &str)> {
    let rest = shown.strip_prefix(SHOWN_INTERFACE).or_else(|| shown.strip_prefix(SCHEME))?;
    let (label, uri) = rest.split_once('/')?;
    // One resource must not be reached by two URIs.
    let is_shown_so = is_interface(shown) == is_interface(uri);
    let found = Some((Label::decoded(label)?, uri)).filter(|_| is_shown_so);
    found.filter(|(label, uri)| !label.name.is_empty() && !uri.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn label(name: &str, is_personal: bool) -> Label {
        Label { name: name.to_owned(), is_personal }
    }

    #[test]
    fn a_uri_is_shown_with_its_server_and_read_back() {
        for (name, is_personal, shown) in [
            ("web", false, "caribou:web/file:///a/../b?q=%20#f"),
            ("web", true, "caribou:~web/file:///a/../b?q=%20#f"),
            ("~web", false, "caribou:%7Eweb/file:///a/../b?q=%20#f"),
            ("s\u{fc}d/{x}", false, "caribou:s%C3%BCd%2F%7Bx%7D/file:///a/../b?q=%20#f"),
        ] {
            let uri = "file:///a/../b?q=%20#f";
            assert_eq!(shown_uri(&label(name, is_personal), uri), shown);
            assert_eq!(raw_uri(shown), Some((label(name, is_personal), uri)));
        }
    }

    #[test]
    fn what_was_not_shown_by_us_is_no_uri_of_ours() {
        for uri in
            ["", "web/x", "caribou:web", "caribou:web/", "caribou:/x", "caribou:~/x", "caribou:a%2/x", "ui://x/y"]
        {
            assert_eq!(raw_uri(uri), None, "{uri}");
        }
        // Another way to write a label: one server must not be reached by two names.
        for uri in ["caribou:%77eb/x", "caribou:s%c3%bcd/x", "caribou:a b/x", "caribou:%FF/x"] {
            assert_eq!(raw_uri(uri), None, "{uri}");
        }
    }

    #[test]
    fn a_user_interface_is_shown_as_one_and_read_back() {
        // SEP-1865: hosts take `ui://` only.
        let shown = shown_uri(&label("web", false), "ui://clock/app.html");
        assert_eq!(shown, "ui://caribou/web/ui://clock/app.html");
        assert_eq!(raw_uri(&shown), Some((label("web", false), "ui://clock/app.html")));
        let own = shown_uri(&label("web", true), "ui://caribou/x");
        assert_eq!(raw_uri(&own), Some((label("web", true), "ui://caribou/x")));
        for uri in ["caribou:web/ui://clock/app.html", "ui://caribou/web/a://1", "ui://caribou/web", "ui://caribou//x"]
        {
            assert_eq!(raw_uri(uri), None, "{uri}");
        }
    }

    #[test]
    fn a_shown_template_expands_to_the_uri_of_the_expanded_one() {
        let template = shown_uri(&label("web", false), "test://template/{id}/data");
        assert_eq!(raw_uri(&template.replace("{id}", "123")).unwrap().1, "test://template/123/data");
    }

    proptest! {
        #[test]
        fn every_name_and_uri_comes_back(name in ".{1,12}", is_personal: bool, uri in "(ui://)?.{1,30}") {
            let label = label(&name, is_personal);
            let shown = shown_uri(&label, &uri);
            prop_assert_eq!(raw_uri(&shown), Some((label, &*uri)));
        }
    }
}
