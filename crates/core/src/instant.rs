//! Instants as people read them: UTC, as RFC 3339 writes it. No clock is read here.

/// To the second.
pub fn rfc3339_seconds(at_ms: i64) -> String {
    format!("{}Z", civil(at_ms.div_euclid(1_000)))
}

/// To the microsecond.
pub fn rfc3339_micros(at_us: i64) -> String {
    format!("{}.{:06}Z", civil(at_us.div_euclid(1_000_000)), at_us.rem_euclid(1_000_000))
}

/// Date and time of day so many seconds after the beginning of 1970.
fn civil(seconds: i64) -> String {
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}", of_day / 3_600, of_day / 60 % 60, of_day % 60)
}

/// The date so many days after the first of January 1970. Years are counted from March on, so that the leap day is
/// the last of its year.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468; // from the first of March of the year 0
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_written_in_utc_leap_days_included() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00"),
            (-1, "1969-12-31T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (1_709_251_199, "2024-02-29T23:59:59"),
            (4_107_542_400, "2100-03-01T00:00:00"),
        ] {
            assert_eq!(rfc3339_seconds(seconds * 1_000), format!("{text}Z"));
            assert_eq!(rfc3339_micros(seconds * 1_000_000 + 7), format!("{text}.000007Z"));
        }
    }
}
