//! The formats that texts of a form may have (mcp.md §8): only what nobody would take is refused.

/// Whether a text may be of this format; of an unknown one is everything.
pub(super) fn has_format(format: &str, text: &str) -> bool {
    match format {
        "email" => {
            let parts = text.rsplit_once('@').filter(|(name, host)| !name.is_empty() && !host.is_empty());
            parts.is_some() && !text.contains(char::is_whitespace)
        }
        "uri" => {
            let scheme = text.split_once(':').map(|(scheme, _)| scheme).unwrap_or_default();
            let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
            scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.chars().all(is_scheme)
                && !text.contains(char::is_whitespace)
        }
        "date" => is_date(text),
        "date-time" => text.split_once(['T', 't', ' ']).is_some_and(|(date, time)| is_date(date) && is_time(time)),
        _ => true,
    }
}

/// `2026-02-28`, of a calendar that has so many days a month.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let number = |part: &str, digits: usize| {
        let is_plain = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| part.parse::<u32>().ok()).flatten()
    };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2)) else {
        return false;
    };
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// `13:45:00Z`, `13:45:00.5+02:00`.
fn is_time(text: &str) -> bool {
    let digits = |part: Option<&str>| part.is_some_and(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    let bytes = text.as_bytes();
    let is_clock = bytes.len() > 8 && bytes[2] == b':' && bytes[5] == b':';
    let is_offset = |offset: &str| {
        offset.eq_ignore_ascii_case("z")
            || (offset.len() == 6
                && offset.starts_with(['+', '-'])
                && digits(offset.get(1..3))
                && digits(offset.get(4..6)))
    };
    let zone = text.get(8..).unwrap_or_default().trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    is_clock && [0, 3, 6].iter().all(|at| digits(text.get(*at..at + 2))) && is_offset(zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_would_take_is_told_apart() {
        for (format, right, wrong) in [
            ("email", &["a@b", "a@b@c.d"][..], &["", "a", "@b", "a@", "a b@c"][..]),
            ("uri", &["urn:x:y", "https://h/p?q#f"], &["", ":x", "1a:b", "/p", "a b:c", "http://h h"]),
            (
                "date",
                &["2000-02-29", "2026-12-31"],
                &["1900-02-29", "2026-13-01", "2026-00-10", "26-1-1", "2026-1-01", "x"],
            ),
            (
                "date-time",
                &["2026-01-31T10:00:00Z", "2026-01-31t10:00:00.123-02:30"],
                &["2026-01-31T10:00", "2026-01-31T10:00:00", "é"],
            ),
            ("hostname", &["anything", ""], &[]),
        ] {
            assert!(right.iter().all(|text| has_format(format, text)), "{format}");
            assert!(!wrong.iter().any(|text| has_format(format, text)), "{format}");
        }
    }
}
