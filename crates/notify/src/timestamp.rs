//! The time of an event as RFC 3339 writes it, in UTC. For people; nothing is decided by it.

const DAY: i64 = 86_400;

/// `at_us` microseconds of the Unix epoch.
pub(crate) fn rfc3339(at_us: i64) -> String {
    let (seconds, micros) = (at_us.div_euclid(1_000_000), at_us.rem_euclid(1_000_000));
    let (days, of_day) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let (year, month, day) = date(days);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// Year, month and day of the Gregorian calendar, `days` after 1970-01-01.
fn date(days: i64) -> (i64, i64, i64) {
    // Counted from 0000-03-01, so that the leap day is the last of its year. An era is 400 years, and always as long.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Months from March on have 31, 30, 31, 30, 31 days, again and again.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339_says() {
        // RFC 3339 §5.6.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400, "2000-02-29T00:00:00.000000Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000000Z"),
            (1_709_251_200, "2024-03-01T00:00:00.000000Z"),
            (4_107_542_399, "2100-02-28T23:59:59.000000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000000Z"),
            (-1, "1969-12-31T23:59:59.000000Z"),
        ] {
            assert_eq!(rfc3339(seconds * 1_000_000), text);
        }
        assert_eq!(rfc3339(1_500_000), "1970-01-01T00:00:01.500000Z");
    }

    #[test]
    fn days_follow_each_other_for_a_thousand_years() {
        let mut before = date(-1);
        for days in 0..365_243 {
            let (year, month, day) = date(days);
            let is_next = match (month, day) {
                (1, 1) => before == (year - 1, 12, 31),
                (_, 1) => before.1 == month - 1 && (28..=31).contains(&before.2),
                _ => before == (year, month, day - 1),
            };
            assert!(is_next, "{before:?} {year}-{month}-{day}");
            before = (year, month, day);
        }
    }
}
